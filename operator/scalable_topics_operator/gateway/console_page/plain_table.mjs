// A table of texts that is small enough to be shown whole.

import { el } from "./dom.mjs";

// heads: labels of the columns; a label in a list of its own is that of numbers.
// rows: { cells, chosen }: as many texts as there are columns, the first of which names the row.
export function plainTable(caption, heads, rows, empty = "There is nothing.") {
  const kinds = heads.map((head) => (Array.isArray(head) ? "numeric" : null));
  const labels = heads.flat().map((text, index) => el("th", { scope: "col", class: kinds[index], text }));
  const drawn = rows.map(({ cells, chosen }) =>
    el(
      "tr",
      { class: chosen ? "chosen" : null },
      cells.map((text, index) =>
        el(index ? "td" : "th", { scope: index ? null : "row", class: kinds[index], text: String(text) }),
      ),
    ),
  );
  const body = drawn.length ? drawn : el("tr", {}, el("td", { colspan: heads.length, text: empty }));
  const parts = [el("caption", { text: caption }), el("thead", {}, el("tr", {}, labels)), el("tbody", {}, body)];
  return el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": caption }, el("table", {}, parts));
}
