// One segment: what it is, who reads it, and what may be done with it.

import { Resource, ask } from "./api.mjs";
import { announce, el, fill, terms } from "./dom.mjs";
import { ago, bytes, ids, moment, number, range } from "./format.mjs";
import { inWords } from "./load.mjs";
import { segmentPath, topicPath } from "./places.mjs";
import { touching } from "./ring.mjs";

const EVERY_SECONDS = 5;

export class SegmentPanel {
  // changes: answers whether the reader has allowed changes; asked: called after something was asked for.
  constructor({ topic, connection, choose, changes, asked }) {
    Object.assign(this, { topic, connection, choose, changes, asked });
    this.cursors = null;
    this.id = null;
    this.element = el("section", { class: "panel", "aria-label": "The chosen segment" });
  }

  // Choose a segment of a record.
  select(id, record) {
    const found = record?.segments[id];
    if (!found) {
      this.id = this.cursors = null;
      return;
    }
    if (this.id !== id) {
      this.id = id;
      const descriptor = `${range(found.hashRange.start, found.hashRange.end)}-${id}`;
      this.cursors = new Resource(segmentPath(this.topic, this.connection, descriptor, "/subscriptions"), EVERY_SECONDS);
    }
  }

  refresh(signal) {
    return this.cursors?.refresh(signal);
  }

  draw(record, loads, may) {
    const segment = record?.segments[this.id];
    if (!segment) {
      fill(this.element, "none", () => el("p", { class: "hint", text: "Choose a segment in the picture or in the table." }));
      return;
    }
    const load = loads.get(this.id);
    const allowed = this.changes() ? ["split", "merge", "rebucket"].filter((one) => may.includes(one)) : [];
    const signature = JSON.stringify([segment, load, this.cursors.version, allowed]);
    fill(this.element, signature, () => [
      el("h2", { text: `Segment ${this.id}` }),
      this.#facts(segment, load),
      this.#relatives(segment, record),
      this.#cursors(),
      segment.state === "ACTIVE" && allowed.length ? this.#actions(segment, record, allowed) : null,
    ]);
  }

  #facts(segment, { rates, backlog, ...load }) {
    const now = Date.now();
    const behind = Object.entries(backlog ?? {}).map(([name, count]) => `${name}: ${number(count)}`);
    return terms([
      ["Hash range", range(segment.hashRange.start, segment.hashRange.end)],
      ["State", segment.state === "ACTIVE" ? "active" : `sealed at epoch ${segment.sealedAtEpoch}, ${ago(segment.sealedAtMs, now)}`],
      ["Load", inWords(load)],
      ["In", rates ? `${number(rates.msgRateIn)} messages/s, ${bytes(rates.byteRateIn)}/s` : "–"],
      ["Out", rates ? `${number(rates.msgRateOut)} messages/s, ${bytes(rates.byteRateOut)}/s` : "–"],
      ["Backlog, sampled", behind.length ? behind.join(", ") : "–"],
      ["Made by", `${segment.createdBy.toLowerCase()} at epoch ${segment.createdAtEpoch}`],
      ["Made at", segment.createdAtMs ? moment(segment.createdAtMs) : "–"],
      ["Entry buckets", String((segment.entryBucketSplits?.length ?? 0) + 1)],
      ["Merges in its ancestry", String(segment.mergeDepth)],
    ]);
  }

  #relatives(segment, record) {
    const links = (list) =>
      list.length === 0
        ? "none in the layout"
        : list.map((id) =>
            record.segments[id]
              ? el("button", { type: "button", class: "link", "data-focus": `segment ${id}`, text: String(id), on: { click: () => this.choose(id) } })
              : el("span", { text: `${id} (gone) ` }),
          );
    return terms([
      ["Parents", el("span", {}, links(segment.parentIds))],
      ["Children", el("span", {}, links(segment.childIds))],
    ]);
  }

  #cursors() {
    const { value, reason } = this.cursors;
    if (value === null) {
      return el("p", { class: "hint", text: reason || "Asking its broker for the cursors…" });
    }
    const rows = Object.entries(value).map(([name, cursor]) =>
      el("tr", {}, el("th", { scope: "row", text: name }), el("td", { class: "numeric", text: number(cursor.backlog) }), el("td", { class: "numeric", text: String(cursor.consumers) }), el("td", { text: cursor.markDelete || "–" })),
    );
    const heads = ["Subscription", "Entries left", "Consumers", "Read up to"].map((text) => el("th", { scope: "col", text }));
    return el("table", {}, el("caption", { text: "Cursors, as its broker shows them now" }), el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows.length ? rows : el("tr", {}, el("td", { colspan: 4, text: "There are none." }))));
  }

  #actions(segment, record, allowed) {
    const button = (text, open) => el("button", { type: "button", "data-focus": text, text, on: { click: open } });
    const merges = touching(record, this.id);
    return el(
      "div",
      { class: "actions" },
      allowed.includes("split") ? button("Split…", () => this.#ask("Split", `/split/${this.id}`, [field("into", "Into how many equal parts", 2, 2, 64)])) : null,
      allowed.includes("merge") ? merges.map((other) => button(`Merge with ${other}…`, () => this.#ask("Merge", `/merge/${this.id}/${other}`, [], ids([this.id, other])))) : null,
      allowed.includes("rebucket")
        ? button("Rebucket…", () => this.#ask("Rebucket", `/rebucket/${this.id}`, [field("buckets", "Entry buckets of its successor", (segment.entryBucketSplits?.length ?? 0) + 1, 1, 1024)]))
        : null,
    );
  }

  // Ask what exactly is wanted, show what would be done, and do it once that was seen.
  #ask(kind, further, fields, segments = String(this.id)) {
    const output = el("div", { class: "output", role: "status" });
    const query = () => Object.fromEntries(fields.map(({ input }) => [input.name, input.value]));
    const send = async (dryRun) => {
      buttons.forEach((one) => { one.disabled = true; });
      output.replaceChildren(el("p", { text: dryRun ? "Asking…" : "Under way…" }));
      try {
        const path = topicPath(this.topic, this.connection, further, { ...query(), ...(dryRun ? { dryRun: true } : {}) });
        const answer = await ask(path, { method: "POST" });
        const said = answer.status === 204 ? "Done." : answer.value?.reason ?? answer.value?.message ?? "Asked for.";
        output.replaceChildren(el("p", { text: said }), answer.value?.plan ? el("pre", { tabindex: "0", text: JSON.stringify(answer.value.plan, null, 1) }) : "");
        announce(`${kind} of ${segments}: ${said}`);
        if (!dryRun) {
          this.asked();
        }
      } catch (error) {
        output.replaceChildren(el("p", { class: "wrong", text: error.message }));
      }
      buttons.forEach((one) => { one.disabled = false; });
    };
    const buttons = [
      el("button", { type: "button", text: "Dry run", on: { click: () => send(true) } }),
      el("button", { type: "submit", class: "main", text: `${kind} now` }),
    ];
    const close = el("button", { type: "button", text: "Close", on: { click: () => dialog.close() } });
    const submit = (event) => {
      event.preventDefault();
      void send(false);
    };
    const form = el("form", { on: { submit } }, fields.map((one) => one.element), output, el("p", { class: "actions" }, buttons, close));
    const dialog = el("dialog", { "aria-labelledby": "asked", on: { close: () => dialog.remove() } }, el("h2", { id: "asked", text: `${kind} of segment ${segments}` }), form);
    document.body.append(dialog);
    dialog.showModal();
  }
}

function field(name, label, value, least, most) {
  const input = el("input", { type: "number", id: `field-${name}`, name, value, min: least, max: most, required: true });
  return { input, element: el("p", {}, el("label", { for: `field-${name}`, text: label }), input) };
}
