// The fleet: every topic that the reader may list, with filters.

import { ApiError, Resource } from "./api.mjs";
import { announce, badge, el } from "./dom.mjs";
import { STATES, passes, stateOf, valuesOf } from "./fleet_rows.mjs";
import { ago, moment, number } from "./format.mjs";
import { fragmentOf, partsOf } from "./places.mjs";
import { poll } from "./polling.mjs";
import { PagedTable } from "./table.mjs";

const EVERY_SECONDS = 5;
const LIMIT = 1000;
const TYPING_MS = 150;

const COLUMNS = [
  { label: "Topic", text: (row) => row.topic, cell: topicLink, key: (row) => row.topic },
  { label: "Object", text: (row) => `${row.namespace}/${row.name}`, key: (row) => `${row.namespace}/${row.name}` },
  { label: "State", text: stateText, cell: stateCell, wrap: true, key: (row) => STATES.indexOf(stateOf(row)) },
  { label: "Active", text: (row) => number(row.activeSegments), key: (row) => row.activeSegments, numeric: true },
  { label: "Sealed", text: (row) => number(row.sealedSegments), key: (row) => row.sealedSegments, numeric: true },
  { label: "Epoch", text: (row) => String(row.epoch), key: (row) => row.epoch, numeric: true },
  { label: "Subscriptions", text: (row) => String(row.subscriptions), key: (row) => row.subscriptions, numeric: true },
  { label: "Backend", text: (row) => row.backend, key: (row) => row.backend },
  { label: "Connection", text: (row) => row.connection, key: (row) => row.connection },
  { label: "Last operation", text: (row) => row.lastAction, wrap: true, key: (row) => row.lastAction },
  { label: "Created", text: (row) => row.createdAt, cell: ageCell, key: (row) => row.createdAt },
];

function topicLink(row) {
  const parts = partsOf(row.topic);
  return parts
    ? el("a", { href: fragmentOf(parts, row.connection), "data-focus": row.topic, text: row.topic })
    : row.topic;
}

function stateText(row) {
  const state = stateOf(row);
  return `${state} ${state === "Ready" ? "" : row.operation || row.reason} ${row.reports}`;
}

function stateCell(row) {
  const state = stateOf(row);
  const why = state === "Ready" ? "" : row.operation || row.reason;
  const reports = row.reports ? el("span", { class: "hint", text: ` ${row.reports} to look at` }) : null;
  return el("span", { title: row.message || null }, badge(state), why ? ` ${why}` : null, reports);
}

function ageCell(row) {
  return el("span", { title: moment(row.createdAt), text: ago(Date.parse(row.createdAt), Date.now()) });
}

// The pages of the fleet, each asked for again only when it has changed.
class Fleet {
  constructor() {
    this.pages = [];
  }

  async refresh(signal) {
    let after = "";
    for (let index = 0; ; index += 1) {
      const path = `admin/v2/scalable?limit=${LIMIT}${after ? `&after=${encodeURIComponent(after)}` : ""}`;
      if (this.pages[index]?.path !== path) {
        this.pages.length = index;
        this.pages.push(new Resource(path));
      }
      const page = this.pages[index];
      await page.refresh(signal);
      if (page.reason) {
        throw new ApiError(403, page.reason);
      }
      after = page.value?.next;
      if (!after) {
        this.pages.length = index + 1;
        return;
      }
    }
  }

  get version() {
    return this.pages.map((page) => `${page.path} ${page.version}`).join();
  }

  get rows() {
    return this.pages.flatMap((page) => page.value?.topics ?? []);
  }
}

// The way to a topic for those who may not list any.
function byName() {
  const input = el("input", {
    id: "by-name",
    autocomplete: "off",
    placeholder: "tenant/namespace/topic",
    required: true,
  });
  const submit = (event) => {
    event.preventDefault();
    const parts = partsOf(input.value);
    input.setCustomValidity(parts ? "" : "A topic is named tenant/namespace/topic.");
    if (input.reportValidity()) {
      location.hash = fragmentOf(parts, "");
    }
  };
  const open = el("button", { type: "submit", text: "Open" });
  input.addEventListener("input", () => input.setCustomValidity(""));
  return el(
    "form",
    { class: "filters", on: { submit } },
    el("p", {}, el("label", { for: "by-name", text: "A topic by its name" }), el("span", {}, input, " ", open)),
  );
}

// Filters are kept while the reader looks at topics and comes back.
const filter = { text: "", state: "", namespace: "", backend: "", connection: "" };

export function fleetPage({ signal, failed }) {
  const fleet = new Fleet();
  const table = new PagedTable({
    caption: "Topics",
    columns: COLUMNS,
    idOf: (row) => `${row.namespace}/${row.name}`,
    order: 0,
    empty: "No topic passes the filter.",
  });
  const count = el("p", { class: "count", text: "Asking for the topics…" });
  const choices = {
    state: choice("state", "State"),
    namespace: choice("namespace", "Namespace"),
    backend: choice("backend", "Backend"),
    connection: choice("connection", "Connection"),
  };
  let version = "";

  function choice(field, label) {
    const select = el("select", { id: `by-${field}`, on: { change: () => set(field, select.value) } });
    return { select, element: el("p", {}, el("label", { for: `by-${field}`, text: label }), select) };
  }

  function set(field, value) {
    filter[field] = value;
    table.page = 0;
    draw();
    announce(count.textContent);
  }

  function offer() {
    const values = { state: STATES };
    for (const field of ["namespace", "backend", "connection"]) {
      values[field] = valuesOf(fleet.rows, field);
    }
    for (const [field, { select }] of Object.entries(choices)) {
      const wanted = ["", ...new Set([...values[field], filter[field]].filter(Boolean))];
      if (wanted.join("\n") !== [...select.options].map((one) => one.value).join("\n")) {
        select.replaceChildren(...wanted.map((one) => el("option", { value: one, text: one || "all" })));
      }
      select.value = filter[field];
    }
  }

  function draw() {
    const rows = fleet.rows;
    const shown = rows.filter((row) => passes(row, filter));
    table.update(shown);
    count.textContent = `${shown.length} of ${rows.length} topics`;
  }

  let typing;
  const search = el("input", { type: "search", id: "by-text", value: filter.text, autocomplete: "off" });
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => set("text", search.value), TYPING_MS);
  });
  const filters = el(
    "form",
    {
      class: "filters",
      role: "search",
      "aria-label": "Filter of topics",
      on: { submit: (event) => event.preventDefault() },
    },
    el("p", {}, el("label", { for: "by-text", text: "Contains" }), search),
    Object.values(choices).map((one) => one.element),
  );

  const finding = el("div", { class: "filters" }, filters, byName());
  const refresh = async () => {
    await fleet.refresh(signal);
    if (fleet.version !== version) {
      version = fleet.version;
      offer();
      draw();
    }
  };
  void poll(refresh, EVERY_SECONDS, signal, failed);
  return {
    title: "Topics",
    element: el("section", {}, el("h1", { tabindex: "-1", text: "Topics" }), finding, count, table.element),
  };
}
