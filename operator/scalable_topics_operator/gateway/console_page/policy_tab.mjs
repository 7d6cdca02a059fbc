// The policy that applies to a topic: every knob, and the level that gave it.

import { el } from "./dom.mjs";
import { PagedTable } from "./table.mjs";

const COLUMNS = [
  { label: "Knob", text: (one) => one.knob, key: (one) => one.knob },
  { label: "Value", text: shown, key: (one) => one.value, numeric: true },
  { label: "Unit", text: (one) => one.unit ?? "", key: (one) => one.unit ?? "" },
  { label: "Set by", text: (one) => one.origin, key: (one) => (one.origin === "default" ? "~" : one.origin) },
];

// A knob's value as manifests have it. Pure.
export function shown({ value }) {
  return typeof value === "boolean" ? String(value) : Number(value).toLocaleString("en", { maximumFractionDigits: 3 });
}

export class PolicyTab {
  constructor({ resources }) {
    this.resources = resources;
    this.note = el("p", { class: "hint", text: "Asking the topic's leader…" });
    this.problem = el("p", { class: "wrong", hidden: true });
    this.table = new PagedTable({
      caption: "The effective policy",
      columns: COLUMNS,
      idOf: (one) => one.knob,
      size: 100,
      order: -1,
      chosen: (one) => one.origin !== "default",
    });
    this.table.element.hidden = true;
    this.element = el("div", {}, this.note, this.problem, this.table.element);
    this.version = 0;
  }

  get needs() {
    return ["policy"];
  }

  draw() {
    const { value, reason, version } = this.resources.policy;
    if (version === this.version) {
      return;
    }
    this.version = version;
    this.table.element.hidden = value === null;
    if (value === null) {
      this.note.textContent = reason;
      return;
    }
    const set = value.knobs.filter((one) => one.origin !== "default").length;
    const whose = value.engine === "Broker" ? "The brokers decide." : "The operator decides.";
    this.note.textContent =
      reason || `${whose} ${set} of ${value.knobs.length} knobs are set by a policy, the others are defaults.`;
    this.problem.textContent = value.problem;
    this.problem.hidden = !value.problem;
    this.table.update(value.knobs);
  }
}
