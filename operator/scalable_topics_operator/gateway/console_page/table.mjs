// A table in pages, sorted by the column that the reader chooses; rows that are as before stay as they are.

import { el, replaceIn } from "./dom.mjs";
import { pageOf, sorted } from "./fleet_rows.mjs";

// options.caption: what the table is of.
// options.columns: { label, text(row), cell(row) if it is more than that text, key(row) to sort by, numeric, wrap }.
// options.idOf: what tells a row from others.
// options.size: rows of a page.
// options.order: index of the column it is sorted by at first; -1 for as they come.
// options.chosen: answers whether a row is the one that is chosen, if one can be.
export class PagedTable {
  constructor({
    caption,
    columns,
    idOf,
    size = 50,
    order = -1,
    descending = false,
    chosen = null,
    empty = "There is nothing.",
  }) {
    Object.assign(this, { columns, idOf, size, order, descending, chosen, empty });
    this.page = 0;
    // As they came, from which equal ones have their order, and as they are sorted.
    this.given = this.rows = [];
    this.shown = new Map();
    this.caption = caption;
    this.heads = columns.map((column, index) => this.#head(column, index));
    this.body = el("tbody");
    this.table = el(
      "table",
      {},
      el("caption", { text: caption }),
      el("thead", {}, el("tr", {}, this.heads)),
      this.body,
    );
    this.where = el("span", {});
    this.back = el("button", { type: "button", text: "Previous", on: { click: () => this.#turn(-1) } });
    this.forth = el("button", { type: "button", text: "Next", on: { click: () => this.#turn(1) } });
    this.pager = el("nav", { class: "pager", "aria-label": `Pages of: ${caption}` }, this.back, this.where, this.forth);
    const scroller = el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": caption }, this.table);
    this.element = el("div", { class: "paged" }, scroller, this.pager);
    this.draw();
  }

  // Show other rows; the page and the order stay.
  update(rows) {
    this.given = rows;
    this.#sort();
    this.draw();
  }

  // Turn to the page that a row is on, for when it is drawn next.
  turnTo(id) {
    const index = this.rows.findIndex((row) => this.idOf(row) === id);
    if (index >= 0) {
      this.page = Math.floor(index / this.size);
    }
  }

  draw() {
    const { number, pages, rows } = pageOf(this.rows, this.page, this.size);
    this.page = number;
    const made = new Map(rows.map((row) => [this.idOf(row), this.#row(row)]));
    this.shown = made;
    const wanted = [...made.values()].map((one) => one.element);
    if (wanted.length === 0) {
      wanted.push(el("tr", {}, el("td", { colspan: this.columns.length, text: this.empty })));
    }
    const present = [...this.body.children];
    if (present.length !== wanted.length || present.some((element, index) => element !== wanted[index])) {
      replaceIn(this.body, wanted);
    }
    this.pager.hidden = pages === 1;
    this.where.textContent = `Page ${number + 1} of ${pages}, ${this.rows.length} rows`;
    this.back.disabled = number === 0;
    this.forth.disabled = number === pages - 1;
    this.heads.forEach((head, index) => {
      const direction = this.descending ? "descending" : "ascending";
      head.setAttribute("aria-sort", index === this.order ? direction : "none");
    });
  }

  #sort() {
    const column = this.columns[this.order];
    this.rows = column ? sorted(this.given, column.key, this.descending) : this.given;
  }

  #turn(step) {
    this.page += step;
    this.draw();
    this.element.querySelector(".scroller").scrollTop = 0;
  }

  #head(column, index) {
    const attributes = { scope: "col", class: column.numeric ? "numeric" : null };
    if (!column.key) {
      return el("th", { ...attributes, text: column.label });
    }
    const sort = () => {
      this.descending = this.order === index ? !this.descending : Boolean(column.numeric);
      this.order = index;
      this.page = 0;
      this.#sort();
      this.draw();
    };
    return el(
      "th",
      attributes,
      el("button", { type: "button", class: "sort", text: column.label, on: { click: sort } }),
    );
  }

  #row(row) {
    const id = this.idOf(row);
    const chosen = this.chosen?.(row) ?? null;
    const texts = this.columns.map((column) => column.text(row));
    const signature = JSON.stringify([chosen, texts]);
    const before = this.shown.get(id);
    if (before?.signature === signature) {
      return before;
    }
    const cells = this.columns.map((column, index) => {
      const content = column.cell ? column.cell(row) : texts[index];
      const name = index === 0 ? "th" : "td";
      return el(
        name,
        { class: column.numeric ? "numeric" : column.wrap ? "wrap" : null, scope: index === 0 ? "row" : null },
        content,
      );
    });
    return { signature, element: el("tr", { class: chosen ? "chosen" : null }, cells) };
  }
}
