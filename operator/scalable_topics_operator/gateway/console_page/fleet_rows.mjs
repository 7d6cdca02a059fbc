// Lines of the fleet: how a topic stands in one word, which lines a filter lets through, and in which order. Pure.

export const STATES = ["Stalled", "Not ready", "Working", "Paused", "Deleting", "Ready"];

// How a topic stands, in one word of STATES.
export function stateOf(row) {
  if (row.deleting) {
    return "Deleting";
  }
  if (row.conditions.Stalled === "True") {
    return "Stalled";
  }
  if (row.paused) {
    return "Paused";
  }
  if (row.operation || row.conditions.Reconciling === "True") {
    return "Working";
  }
  return row.conditions.Ready === "True" ? "Ready" : "Not ready";
}

// Whether a line passes a filter; an empty part of the filter lets everything through.
export function passes(row, { text = "", state = "", namespace = "", backend = "", connection = "" }) {
  const wanted = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const said = `${row.topic} ${row.namespace}/${row.name} ${row.reason} ${row.lastAction}`.toLowerCase();
  return (
    wanted.every((word) => said.includes(word)) &&
    (!state || stateOf(row) === state) &&
    (!namespace || row.namespace === namespace) &&
    (!backend || row.backend === backend) &&
    (!connection || row.connection === connection)
  );
}

// The different values of a field, sorted: what a filter offers.
export function valuesOf(rows, field) {
  return [...new Set(rows.map((row) => row[field]).filter(Boolean))].sort();
}

// Rows by a key, numbers as numbers and texts as people order them; equal ones keep their order.
export function sorted(rows, keyOf, descending) {
  const collator = new Intl.Collator("en", { numeric: true });
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
  const missing = (key) => key === null || key === undefined;
  return rows
    .map((row) => [keyOf(row), row])
    .sort(([a], [b]) => {
      // What is not known comes last, whichever way round.
      if (missing(a) || missing(b)) {
        return Number(missing(a)) - Number(missing(b));
      }
      return descending ? compare(b, a) : compare(a, b);
    })
    .map(([, row]) => row);
}

// One page of rows, and the number of the page that there is if the one wanted is not.
export function pageOf(rows, page, size) {
  const pages = Math.max(1, Math.ceil(rows.length / size));
  const number = Math.min(Math.max(0, page), pages - 1);
  return { number, pages, rows: rows.slice(number * size, (number + 1) * size) };
}
