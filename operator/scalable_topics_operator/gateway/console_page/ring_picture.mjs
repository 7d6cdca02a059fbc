// The picture of the ring over time: segments as blocks, load as colour, splits and merges as edges.

import { el, svg } from "./dom.mjs";
import { hex, moment, number, range } from "./format.mjs";
import { LEVELS, inWords, mostBacklog } from "./load.mjs";
import { neighbour, ringOf } from "./ring.mjs";

const HEIGHT = 440;
const TOP = 8;
const FOOT = 28;
const LEFT = 52;
const GAP = 14;
const LEAST_COLUMN = 34;
const MOST_COLUMN = 220;
const LEAST_BLOCK = 2;
const LABEL_ROOM = { width: 30, height: 13, both: 74 };
const TICK_ROOM = 44;
const KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]);

// options.choose: called with the id of the segment that the reader chooses.
export class RingPicture {
  constructor({ choose }) {
    this.choose = choose;
    this.chosen = null;
    this.ring = null;
    this.drawn = new Map();
    this.svg = svg("svg", {
      class: "ring",
      role: "listbox",
      tabindex: "0",
      "aria-label":
        "Segments over time. Arrow keys go to neighbours on the ring, parents and children; a table follows.",
      on: {
        keydown: (event) => this.#key(event),
        focus: () => this.chosen ?? this.#choose(this.ring?.blocks.at(-1)?.id),
      },
    });
    this.scale = svg("svg", { class: "scale", "aria-hidden": "true", width: LEFT, height: HEIGHT + TOP + FOOT });
    this.scroller = el("div", { class: "ring-scroller" }, this.svg);
    this.element = el("div", { class: "ring-frame" }, this.scale, this.scroller);
  }

  // Draw a record, with the loads of its segments by id.
  draw(record, loads, options) {
    const first = this.ring === null;
    this.ring = ringOf(record, { ...options, nowMs: Date.now() });
    const atEnd = this.scroller.scrollLeft + this.scroller.clientWidth >= this.scroller.scrollWidth - 2;
    const room = Math.max(320, this.element.clientWidth - LEFT - 2);
    const { columns } = this.ring;
    this.column = options.fit ? room / columns : Math.min(MOST_COLUMN, Math.max(LEAST_COLUMN, room / columns));
    const width = Math.ceil(this.column * columns) + 2;
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", HEIGHT + TOP + FOOT);
    this.drawn = new Map(this.ring.blocks.map((block) => [block.id, this.#block(block, loads.get(block.id))]));
    const blocks = [...this.drawn.values()].map((one) => one.element);
    this.svg.replaceChildren(hatching(), this.#edges(), svg("g", {}, blocks), this.#ticks(options.axis));
    this.scale.replaceChildren(...this.ring.marks.map(hashMark));
    if (this.chosen !== null && !this.drawn.has(this.chosen)) {
      this.chosen = null;
    }
    this.#mark(null);
    // The present is at the right.
    if (first || atEnd) {
      this.scroller.scrollLeft = this.scroller.scrollWidth;
    }
  }

  // Give blocks the colours and words of other loads, and leave everything where it is.
  recolour(loads) {
    for (const block of this.ring?.blocks ?? []) {
      const before = this.drawn.get(block.id);
      const { label, level } = this.#words(block, loads.get(block.id));
      // Two shares that are rounded to one percentage may be of two levels.
      if (before.label !== label || before.level !== level) {
        const made = this.#block(block, loads.get(block.id));
        before.element.replaceWith(made.element);
        this.drawn.set(block.id, made);
      }
    }
    this.#mark(null);
  }

  // Mark a segment as chosen.
  select(id) {
    const before = this.chosen;
    this.chosen = id;
    this.#mark(before);
    const block = this.ring?.blocks.find((one) => one.id === id);
    if (block) {
      const x0 = block.x0 * this.column;
      const x1 = Math.min(block.x1 * this.column, x0 + this.scroller.clientWidth);
      if (x0 < this.scroller.scrollLeft) {
        this.scroller.scrollLeft = x0 - GAP;
      } else if (x1 > this.scroller.scrollLeft + this.scroller.clientWidth) {
        this.scroller.scrollLeft = x1 - this.scroller.clientWidth + GAP;
      }
    }
  }

  #mark(before) {
    this.drawn.get(before)?.element.setAttribute("aria-selected", "false");
    const chosen = this.drawn.get(this.chosen)?.element;
    chosen?.setAttribute("aria-selected", "true");
    if (chosen) {
      this.svg.setAttribute("aria-activedescendant", chosen.id);
    } else {
      this.svg.removeAttribute("aria-activedescendant");
    }
  }

  #choose(id) {
    if (id !== undefined && id !== null) {
      this.choose(id);
    }
  }

  #key(event) {
    if (this.ring && KEYS.has(event.key)) {
      event.preventDefault();
      this.#choose(neighbour(this.ring.blocks, this.chosen, event.key));
    }
  }

  #box(block) {
    const x = block.x0 * this.column + 1;
    const y = TOP + block.y0 * HEIGHT;
    // Children are drawn a gap to the right, through which edges lead.
    const width = Math.max(2, (block.x1 - block.x0) * this.column - Math.min(GAP, this.column / 3));
    return { x, y, width, height: Math.max(LEAST_BLOCK, (block.y1 - block.y0) * HEIGHT - 1) };
  }

  #words(block, load) {
    const { segment } = block;
    const named = `Segment ${block.id}, ${range(segment.hashRange.start, segment.hashRange.end)}, ${inWords(load)}`;
    const rates = load.rates ? `, ${number(load.rates.msgRateIn)} messages/s in` : "";
    const backlog = mostBacklog(load.backlog);
    const behind = backlog === null ? "" : `, backlog ${number(backlog)}`;
    return { label: `${named}${rates}${behind}`, level: load.level };
  }

  #block(block, load) {
    const { x, y, width, height } = this.#box(block);
    const { label, level } = this.#words(block, load);
    const fits = width >= LABEL_ROOM.width && height >= LABEL_ROOM.height;
    const said =
      load.rates && width >= LABEL_ROOM.both ? `${block.id} · ${number(load.rates.msgRateIn)}/s` : `${block.id}`;
    const element = svg(
      "g",
      {
        class: `block level-${level}`,
        id: `segment-${block.id}`,
        role: "option",
        "aria-selected": "false",
        "aria-label": label,
        on: { click: () => this.#choose(block.id) },
      },
      svg("title", { text: label }),
      svg("rect", { x, y, width, height, rx: Math.min(2, height / 4) }),
      block.active ? null : svg("rect", { class: "hatch", x, y, width, height, fill: "url(#hatch)" }),
      fits ? svg("text", { x: x + 4, y: y + Math.min(height / 2 + 4, 14), text: said }) : null,
    );
    return { element, label, level };
  }

  #edges() {
    const lines = this.ring.edges.map(({ from, to, kind }) => {
      const [left, right] = [this.#box(from), this.#box(to)];
      const [x0, x1] = [left.x + left.width, right.x];
      const [y0, y1] = [left.y + left.height / 2, right.y + right.height / 2];
      const bend = (x0 + x1) / 2;
      return svg("path", { class: `edge edge-${kind}`, d: `M${x0} ${y0}C${bend} ${y0} ${bend} ${y1} ${x1} ${y1}` });
    });
    return svg("g", { "aria-hidden": "true" }, lines);
  }

  #ticks(axis) {
    const every = Math.max(1, Math.ceil((axis === "time" ? 140 : TICK_ROOM) / this.column));
    const shown = axis === "time" ? this.ring.ticks : this.ring.ticks.filter((_, index) => index % every === 0);
    const y = TOP + HEIGHT + 16;
    const texts = shown.map(({ x, value }) =>
      svg("text", {
        x: x * this.column + 2,
        y,
        text: axis === "time" ? moment(value).slice(5, 19) : `epoch ${value}`.slice(this.column * every < 70 ? 6 : 0),
      }),
    );
    return svg("g", { class: "ticks", "aria-hidden": "true" }, texts);
  }
}

function hashMark({ y, hash }) {
  const at = TOP + y * HEIGHT;
  return svg(
    "g",
    {},
    svg("line", { x1: LEFT - 6, x2: LEFT, y1: at, y2: at }),
    svg("text", { x: 2, y: Math.min(at + 4, TOP + HEIGHT), text: hex(hash) }),
  );
}

function hatching() {
  const line = svg("path", { d: "M0 6L6 0", class: "hatch-line" });
  return svg("defs", {}, svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" }, line));
}

// What the colours mean.
export function legend() {
  const entries = LEVELS.map(([level, meaning]) =>
    el("li", {}, el("span", { class: `swatch level-${level}`, "aria-hidden": "true" }), meaning),
  );
  const edges = ["split", "merge", "rebucket", "migrate"].map((kind) =>
    el(
      "li",
      {},
      svg(
        "svg",
        { class: "swatch-line", width: 24, height: 10, "aria-hidden": "true" },
        svg("path", { class: `edge edge-${kind}`, d: "M1 5H23" }),
      ),
      kind,
    ),
  );
  return el("ul", { class: "legend", "aria-label": "What colours and lines mean" }, entries, edges);
}
