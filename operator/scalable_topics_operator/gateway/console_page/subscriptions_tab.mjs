// The subscriptions of a topic, and who reads what of the ordered ones.

import { el, fill } from "./dom.mjs";
import { ids, moment, number } from "./format.mjs";
import { plainTable } from "./plain_table.mjs";

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
        shown.filter((one) => one.assignment).map(readers),
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
    .map((name) => ({
      subscription: name,
      type: "",
      phase: "",
      initialPosition: "",
      declaredBy: "clients",
      outOfScope: [],
    }));
  return [...declared, ...others]
    .map((one) => ({ ...one, msgBacklog: one.msgBacklog ?? backlogOf(one.subscription) }))
    .sort((a, b) => a.subscription.localeCompare(b.subscription));
}

function overview(shown) {
  const heads = ["Subscription", "Kind", "Phase", ["Backlog of active segments"], ["Consumers"]];
  const rows = shown.map(({ assignment, ...one }) => ({
    cells: [
      one.subscription,
      one.type.toLowerCase() || "–",
      one.phase || "–",
      number(one.msgBacklog),
      assignment ? assignment.consumers.length : "–",
      assignment ? ids(assignment.drained) : "–",
      one.initialPosition || "–",
      one.declaredBy,
    ],
  }));
  const all = [...heads, "Drained segments", "Starts at", "Declared by"];
  return plainTable("Subscriptions", all, rows, "There are no subscriptions.");
}

function readers({ subscription, assignment: { version, consumers } }) {
  const term = version ? `, assignment ${version.term}.${version.epoch}.${version.counter}` : "";
  const rows = consumers.map((one) => ({
    cells: [
      one.name,
      parts(one.segments),
      parts([...one.releasing.map((segment) => ({ segment, buckets: [] })), ...one.releasingBuckets]),
      moment(one.registeredAt),
    ],
  }));
  const heads = ["Consumer", "Reads segments", "Is letting go of", "Registered at"];
  return plainTable(`Consumers of ${subscription}${term}`, heads, rows, "No consumer is registered.");
}

// Segments, with the entry buckets of those that are shared. Pure.
export function parts(segments) {
  return (
    segments
      .map(({ segment, buckets }) => (buckets.length ? `${segment} (buckets ${ids(buckets)})` : String(segment)))
      .join(", ") || "–"
  );
}
