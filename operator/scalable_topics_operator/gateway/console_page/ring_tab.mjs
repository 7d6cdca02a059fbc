// What a topic's segments are: the ring over time, the chosen segment, and all of them in a table.

import { announce, el } from "./dom.mjs";
import { ago, bytes, ids, number, percent, range } from "./format.mjs";
import { inWords, loadsOf, mostBacklog } from "./load.mjs";
import { bucketsOf } from "./ring.mjs";
import { RingPicture, legend } from "./ring_picture.mjs";
import { SegmentPanel, segmentLink } from "./segment_panel.mjs";
import { PagedTable } from "./table.mjs";

const REDRAW_MS = 100;

export class RingTab {
  constructor({ topic, connection, resources, changes, asked, signal }) {
    this.resources = resources;
    this.options = { axis: "epoch", even: false, fit: false };
    this.loads = new Map();
    this.drawn = "";
    this.coloured = "";
    const choose = (id) => this.choose(id);
    this.picture = new RingPicture({ choose });
    this.panel = new SegmentPanel({ topic, connection, choose, changes, asked });
    this.table = new PagedTable({
      caption: "Segments",
      columns: this.#columns(),
      idOf: (segment) => segment.segmentId,
      size: 25,
      order: 2,
      chosen: (segment) => segment.segmentId === this.panel.id,
      empty: "There are no segments.",
    });
    this.waiting = el("p", { class: "hint", text: "Asking for the segments…" });
    this.figure = el(
      "figure",
      {},
      el("figcaption", {
        text: "The hash ring from top to bottom, from its beginning at the left to now at the right.",
      }),
      this.#switches(),
      this.picture.element,
      legend(),
    );
    const beside = el(
      "div",
      { class: "beside" },
      el("div", { class: "wide" }, this.figure, this.table.element),
      this.panel.element,
    );
    this.element = el("div", {}, this.waiting, beside);
    let resizing;
    const observer = new ResizeObserver(() => {
      clearTimeout(resizing);
      resizing = setTimeout(() => this.draw(true), REDRAW_MS);
    });
    observer.observe(this.picture.element);
    signal.addEventListener("abort", () => observer.disconnect(), { once: true });
  }

  get needs() {
    return ["record", "stats", "subscriptions"];
  }

  async refresh(signal) {
    await this.panel.refresh(signal);
  }

  choose(id) {
    const record = this.resources.record.value;
    this.panel.select(id, record);
    this.picture.select(id);
    this.table.turnTo(id);
    this.draw();
    const segment = record.segments[id];
    announce(`Segment ${id}, ${range(segment.hashRange.start, segment.hashRange.end)}, ${inWords(this.loads.get(id))}`);
    void this.panel.refresh()?.then(
      () => this.draw(),
      () => {},
    );
  }

  draw(anew = false) {
    const { record, stats, subscriptions, rights } = this.resources;
    this.waiting.hidden = record.value !== null;
    this.figure.hidden = record.value === null;
    if (record.value === null) {
      this.waiting.textContent = record.reason || this.waiting.textContent;
      return;
    }
    const coloured = `${record.version} ${stats.version} ${subscriptions.version}`;
    const recoloured = coloured !== this.coloured;
    if (recoloured) {
      this.coloured = coloured;
      this.loads = loadsOf(record.value, stats.value, subscriptions.value);
      this.table.update(Object.values(record.value.segments));
    } else {
      this.table.draw();
    }
    const drawn = JSON.stringify([record.version, this.options]);
    // With a clock for an axis the present moves on.
    if (anew || drawn !== this.drawn || this.options.axis === "time") {
      this.drawn = drawn;
      this.picture.draw(record.value, this.loads, this.options);
    } else if (recoloured) {
      this.picture.recolour(this.loads);
    }
    this.panel.draw(record.value, this.loads, rights.value?.may ?? []);
  }

  #switches() {
    const labelled = (input, text) => el("span", { class: "switch" }, input, " ", el("label", { for: input.id, text }));
    const choice = (label, value) => {
      const input = el("input", {
        type: "radio",
        name: "axis",
        id: `axis-${value}`,
        value,
        on: { change: () => this.#set({ axis: value }) },
      });
      input.checked = this.options.axis === value;
      return labelled(input, label);
    };
    const check = (name, label) => {
      const input = el("input", {
        type: "checkbox",
        id: `with-${name}`,
        on: { change: () => this.#set({ [name]: input.checked }) },
      });
      return labelled(input, label);
    };
    return el(
      "fieldset",
      { class: "switches" },
      el("legend", { class: "unseen", text: "How the picture is drawn" }),
      choice("a column for each change", "epoch"),
      choice("true to the clock", "time"),
      check("even", "every range of the same height"),
      check("fit", "all in view"),
    );
  }

  #set(changed) {
    Object.assign(this.options, changed);
    this.draw();
  }

  #columns() {
    const load = (segment) =>
      this.loads.get(segment.segmentId) ?? { rates: null, share: null, readers: [], level: "unknown", backlog: null };
    const rate = (name, shown) => ({
      text: (segment) => shown(load(segment).rates?.[name]),
      key: (segment) => load(segment).rates?.[name] ?? null,
      numeric: true,
    });
    const lived = (segment) => (segment.state === "ACTIVE" ? segment.createdAtMs : segment.sealedAtMs);
    return [
      {
        label: "Segment",
        text: (segment) => String(segment.segmentId),
        cell: (segment) => segmentLink(segment.segmentId, (id) => this.choose(id)),
        key: (segment) => segment.segmentId,
      },
      {
        label: "Hash range",
        text: (segment) => range(segment.hashRange.start, segment.hashRange.end),
        key: (segment) => segment.hashRange.start,
      },
      // Active ones first, in the ring's order.
      {
        label: "State",
        text: (segment) => (segment.state === "ACTIVE" ? "active" : "sealed"),
        key: (segment) => (segment.state === "ACTIVE" ? 0 : 65536) + segment.hashRange.start,
      },
      {
        label: "Load",
        text: (segment) => percent(load(segment).share),
        key: (segment) => load(segment).share,
        numeric: true,
      },
      { label: "Messages/s in", ...rate("msgRateIn", number) },
      { label: "Bytes/s in", ...rate("byteRateIn", bytes) },
      { label: "Messages/s out", ...rate("msgRateOut", number) },
      { label: "Bytes/s out", ...rate("byteRateOut", bytes) },
      {
        label: "Backlog",
        text: (segment) => number(mostBacklog(load(segment).backlog)),
        key: (segment) => mostBacklog(load(segment).backlog),
        numeric: true,
      },
      {
        label: "Still read by",
        text: (segment) => load(segment).readers.join(", "),
        key: (segment) => -load(segment).readers.length,
        wrap: true,
      },
      {
        label: "Buckets",
        text: (segment) => String(bucketsOf(segment)),
        key: bucketsOf,
        numeric: true,
      },
      { label: "Parents", text: (segment) => ids(segment.parentIds), key: (segment) => segment.parentIds[0] ?? null },
      { label: "Children", text: (segment) => ids(segment.childIds), key: (segment) => segment.childIds[0] ?? null },
      { label: "Made or sealed", text: (segment) => ago(lived(segment), Date.now()), key: lived },
    ];
  }
}
