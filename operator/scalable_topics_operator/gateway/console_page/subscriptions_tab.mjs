// The subscriptions of a topic, and who reads what of the ordered ones.

import { el, fill } from "./dom.mjs";
import { ids, moment, number } from "./format.mjs";

const COUNTS = new Set(["Backlog of active segments", "Consumers"]);

export class SubscriptionsTab {
  constructor({ resources }) {
    this.resources = resources;
    this.element = el("div");
  }

  get needs() {
    return ["subscriptions", "stats"];
  }

  draw() {
    const { subscriptions, stats } = this.resources;
    const signature = JSON.stringify([subscriptions.version, stats.version]);
    fill(this.element, signature, () => {
      if (subscriptions.value === null) {
        return el("p", { class: "hint", text: subscriptions.reason || "Asking for the subscriptions…" });
      }
      const shown = withClients(subscriptions.value, stats.value);
      return [
        subscriptions.reason ? el("p", { class: "wrong", text: subscriptions.reason }) : null,
        overview(shown),
        shown.filter((one) => one.assignment).map(assignment),
      ];
    });
  }
}

// What is declared, and what consumers have made by themselves, with their backlogs. Pure.
export function withClients(declared, stats) {
  const backlogs = stats?.subscriptions ?? {};
  const backlogOf = (name) => backlogs[name]?.msgBacklog ?? null;
  const known = new Set(declared.map((one) => one.subscription));
  const others = Object.keys(backlogs)
    .filter((name) => !known.has(name))
    .map((name) => ({ subscription: name, type: "", phase: "", initialPosition: "", declaredBy: "clients", outOfScope: [] }));
  return [...declared, ...others]
    .map((one) => ({ ...one, msgBacklog: one.msgBacklog ?? backlogOf(one.subscription) }))
    .sort((a, b) => a.subscription.localeCompare(b.subscription));
}

function overview(shown) {
  const heads = ["Subscription", "Kind", "Phase", "Backlog of active segments", "Consumers", "Drained segments", "Starts at", "Declared by"];
  const row = (one) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", text: one.subscription }),
      el("td", { text: one.type.toLowerCase() || "–" }),
      el("td", { text: one.phase || "–" }),
      el("td", { class: "numeric", text: number(one.msgBacklog) }),
      el("td", { class: "numeric", text: one.assignment ? String(one.assignment.consumers.length) : "–" }),
      el("td", { text: one.assignment ? ids(one.assignment.drained) : "–" }),
      el("td", { text: one.initialPosition || "–" }),
      el("td", { text: one.declaredBy }),
    );
  return table("Subscriptions", heads, shown.map(row), "There are no subscriptions.");
}

function assignment({ subscription, assignment: { version, consumers } }) {
  const row = (one) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", text: one.name }),
      el("td", { text: parts(one.segments) }),
      el("td", { text: [...one.releasing.map(String), ...(one.releasingBuckets.length ? [parts(one.releasingBuckets)] : [])].join(", ") || "–" }),
      el("td", { text: moment(one.registeredAt) }),
    );
  const term = version ? `, assignment ${version.term}.${version.epoch}.${version.counter}` : "";
  return table(`Consumers of ${subscription}${term}`, ["Consumer", "Reads segments", "Is letting go of", "Registered at"], consumers.map(row), "No consumer is registered.");
}

// Segments, with the entry buckets of those that are shared. Pure.
export function parts(segments) {
  return segments.map(({ segment, buckets }) => (buckets.length ? `${segment} (buckets ${ids(buckets)})` : String(segment))).join(", ") || "–";
}

function table(caption, heads, rows, empty) {
  const body = rows.length ? rows : el("tr", {}, el("td", { colspan: heads.length, text: empty }));
  const head = el("tr", {}, heads.map((text) => el("th", { scope: "col", class: COUNTS.has(text) ? "numeric" : null, text })));
  return el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": caption }, el("table", {}, el("caption", { text: caption }), el("thead", {}, head), el("tbody", {}, body)));
}
