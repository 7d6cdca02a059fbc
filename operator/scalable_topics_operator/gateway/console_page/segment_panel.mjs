// One segment: what it is, who reads it, and what may be done with it.

import { Resource } from "./api.mjs";
import { CHANGES, askForChange } from "./change_dialog.mjs";
import { el, fill, terms } from "./dom.mjs";
import { bytes, moment, number, range } from "./format.mjs";
import { inWords } from "./load.mjs";
import { segmentPath } from "./places.mjs";
import { plainTable } from "./plain_table.mjs";
import { bucketsOf, touching } from "./ring.mjs";

const EVERY_SECONDS = 5;

// What chooses a segment: called with its id.
export function segmentLink(id, choose) {
  return el("button", {
    type: "button",
    class: "link",
    "data-focus": `segment ${id}`,
    text: String(id),
    on: { click: () => choose(id) },
  });
}

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
      this.cursors = new Resource(
        segmentPath(this.topic, this.connection, descriptor, "/subscriptions"),
        EVERY_SECONDS,
      );
    }
  }

  refresh(signal) {
    return this.cursors?.refresh(signal);
  }

  draw(record, loads, may) {
    const segment = record?.segments[this.id];
    if (!segment) {
      fill(this.element, "none", () =>
        el("p", { class: "hint", text: "Choose a segment in the picture or in the table." }),
      );
      return;
    }
    const load = loads.get(this.id);
    const allowed = this.changes() ? CHANGES.filter((one) => may.includes(one)) : [];
    const signature = JSON.stringify([segment, load, this.cursors.version, allowed]);
    fill(this.element, signature, () => [
      el("h2", { text: `Segment ${this.id}` }),
      this.#facts(segment, load),
      this.#relatives(segment),
      this.#cursors(),
      segment.state === "ACTIVE" && allowed.length ? this.#actions(segment, record, allowed) : null,
    ]);
  }

  #facts(segment, { rates, backlog, ...load }) {
    const behind = Object.entries(backlog ?? {}).map(([name, count]) => `${name}: ${number(count)}`);
    return terms([
      ["Hash range", range(segment.hashRange.start, segment.hashRange.end)],
      ["State", segment.state === "ACTIVE" ? "active" : `sealed at epoch ${segment.sealedAtEpoch}`],
      ["Sealed at", moment(segment.sealedAtMs)],
      ["Load", inWords(load)],
      ["In", rates ? `${number(rates.msgRateIn)} messages/s, ${bytes(rates.byteRateIn)}/s` : "–"],
      ["Out", rates ? `${number(rates.msgRateOut)} messages/s, ${bytes(rates.byteRateOut)}/s` : "–"],
      ["Backlog, sampled", behind.length ? behind.join(", ") : "–"],
      ["Made by", `${segment.createdBy.toLowerCase()} at epoch ${segment.createdAtEpoch}`],
      ["Made at", moment(segment.createdAtMs)],
      ["Entry buckets", String(bucketsOf(segment))],
      ["Merges in its ancestry", String(segment.mergeDepth)],
    ]);
  }

  #relatives({ parentIds, childIds }) {
    const link = (id) => segmentLink(id, this.choose);
    const links = (list) => (list.length ? el("span", {}, list.map(link)) : "none in the layout");
    return terms([
      ["Parents", links(parentIds)],
      ["Children", links(childIds)],
    ]);
  }

  #cursors() {
    const { value, reason } = this.cursors;
    if (value === null) {
      return el("p", { class: "hint", text: reason || "Asking its broker for the cursors…" });
    }
    const rows = Object.entries(value).map(([name, cursor]) => ({
      cells: [name, number(cursor.backlog), cursor.consumers, cursor.markDelete || "–"],
    }));
    const heads = ["Subscription", ["Entries left"], ["Consumers"], "Read up to"];
    return plainTable("Cursors, as its broker shows them now", heads, rows, "There are none.");
  }

  #actions(segment, record, allowed) {
    const { topic, connection, asked, id } = this;
    const open = (change) => askForChange({ topic, connection, asked, ...change });
    const button = (text, change) =>
      el("button", { type: "button", "data-focus": text, text, on: { click: () => open(change) } });
    const changes = {
      split: () =>
        button("Split…", {
          kind: "Split",
          segments: [id],
          further: `/split/${id}`,
          fields: [{ name: "into", label: "Into how many equal parts", value: 2, least: 2, most: 64 }],
        }),
      merge: () =>
        touching(record, id).map((other) =>
          button(`Merge with ${other}…`, { kind: "Merge", segments: [id, other], further: `/merge/${id}/${other}` }),
        ),
      rebucket: () =>
        button("Rebucket…", {
          kind: "Rebucket",
          segments: [id],
          further: `/rebucket/${id}`,
          fields: [{ name: "buckets", label: "Entry buckets of its successor", value: bucketsOf(segment), least: 1, most: 1024 }],
        }),
    };
    const shown = allowed.map((name) => changes[name]());
    return el("div", { class: "actions" }, shown);
  }
}
