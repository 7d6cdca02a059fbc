// What was done to a topic and why, and what the last decision on it found.

import { el, fill, terms } from "./dom.mjs";
import { ids, lasting, moment, number } from "./format.mjs";
import { plainTable } from "./plain_table.mjs";
import { PagedTable } from "./table.mjs";

const ACTIONS = [
  { label: "Ended at", text: (one) => moment(one.at), key: (one) => one.at },
  { label: "Operation", text: (one) => one.kind, key: (one) => one.kind },
  { label: "Segments", text: became },
  { label: "Epoch", text: (one) => String(one.epoch), key: (one) => one.epoch, numeric: true },
  { label: "Result", text: (one) => one.result, key: (one) => one.result },
  { label: "Why", text: (one) => one.reason ?? askedBy(one.request), wrap: true },
  { label: "Message", text: (one) => one.message ?? "", wrap: true },
];

export class DecisionsTab {
  constructor({ resources }) {
    this.resources = resources;
    this.decision = el("div");
    this.standing = el("div");
    this.actions = new PagedTable({
      caption: "The last operations",
      columns: ACTIONS,
      idOf: (one) => one.id,
      size: 20,
      empty: "Nothing was done yet.",
    });
    this.version = 0;
    this.element = el("div", {}, this.decision, this.standing, this.actions.element);
  }

  get needs() {
    return ["status", "explain"];
  }

  draw() {
    const { status, explain } = this.resources;
    fill(this.decision, `${explain.version}`, () => explained(explain));
    fill(this.standing, `${status.version}`, () => (status.value === null ? null : standing(status.value)));
    if (status.value !== null && status.version !== this.version) {
      this.version = status.version;
      this.actions.update([...status.value.actions].reverse());
    }
  }
}

// What an operation made of what. Pure.
export function became({ parents = [], children = [] }) {
  return parents.length || children.length ? `${ids(parents)} → ${ids(children)}` : "–";
}

function askedBy(request) {
  return request?.kind ? `asked for by ${request.kind} ${request.name ?? ""}`.trim() : "–";
}

// A decision in a sentence. Pure.
export function inASentence({ action, code }) {
  if (action === null) {
    return `Nothing is to be done (${code}).`;
  }
  const into =
    action.kind === "Split" ? ` into ${action.into}` : action.buckets ? ` to ${action.buckets} entry buckets` : "";
  return `${action.kind} of ${ids(action.segments)}${into}, for ${action.reason}.`;
}

function explained({ value, reason }) {
  const title = el("h2", { text: "The last decision" });
  if (value === null) {
    return [title, el("p", { class: "hint", text: reason || "Asking the topic's leader…" })];
  }
  const { clocks, load, consumers, findings } = value;
  const counts = Object.entries(consumers).map(([name, count]) => `${name}: ${number(count)}`);
  const rows = findings.map((one) => ({
    cells: [one.rule, one.fired ? "fired" : "did not fire", one.code, one.why],
    chosen: one.fired,
  }));
  return [
    title,
    reason ? el("p", { class: "wrong", text: reason }) : null,
    el("p", { class: "said", text: inASentence(value.decision) }),
    terms([
      ["Decided at", moment(value.observedAt)],
      ["Decided by", value.engine === "Broker" ? "the brokers" : "the operator"],
      ["Load", load.fresh ? `fresh, ${lasting(load.ageSeconds)} old` : `not to be acted on: ${load.why}`],
      ["Consumers", counts.join(", ") || "–"],
      ["Last split, merge, rebucket", [clocks.split, clocks.merge, clocks.rebucket].map(moment).join(" · ")],
      ["Looks again in", lasting(value.nextLookSeconds)],
    ]),
    plainTable("What each rule found", ["Rule", "Result", "Code", "Why"], rows),
  ];
}

function standing({ conditions, operation, reports, pruning }) {
  const rows = conditions.map((one) => ({
    cells: [one.type, one.status, one.reason ?? "", one.message ?? "", moment(one.lastTransitionTime)],
  }));
  const pruned = ids(pruning.map((one) => one.id));
  const looks = reports.map((one) => el("li", { text: `${one.reason}: ${one.message}` }));
  return [
    operation ? underWay(operation) : null,
    looks.length ? [el("h2", { text: "To look at" }), el("ul", {}, looks)] : null,
    pruning.length ? el("p", { text: `Being deleted on the brokers: segments ${pruned}.` }) : null,
    plainTable("Conditions", ["Condition", "Status", "Reason", "Message", "Since"], rows),
  ];
}

function underWay({ kind, step, parents, children = [], startedAt, reason, request, message }) {
  const what = became({ parents, children: children.map((one) => one.id) });
  return [
    el("h2", { text: "Under way" }),
    el("p", { class: "said", text: `${kind} at step ${step}: ${what}` }),
    terms([
      ["Begun at", moment(startedAt)],
      ["Why", reason ?? askedBy(request)],
      ["Waits for", message ?? "–"],
    ]),
  ];
}
