// One topic: its standing in a few numbers, and tabs with all that is known of it.

import { Resource } from "./api.mjs";
import { DecisionsTab } from "./decisions_tab.mjs";
import { badge, el, fill, terms } from "./dom.mjs";
import { stateOf } from "./fleet_rows.mjs";
import { bytes, lasting, number } from "./format.mjs";
import { fragmentOf, topicPath } from "./places.mjs";
import { PolicyTab } from "./policy_tab.mjs";
import { poll } from "./polling.mjs";
import { RingTab } from "./ring_tab.mjs";
import { SubscriptionsTab } from "./subscriptions_tab.mjs";

const EVERY_SECONDS = 2;
const TABS = [
  ["ring", "Segments", RingTab],
  ["subscriptions", "Subscriptions", SubscriptionsTab],
  ["decisions", "Decisions", DecisionsTab],
  ["policy", "Policy", PolicyTab],
];
// Always asked for, whichever tab is shown.
const GLANCE = ["status", "record", "stats", "rights"];

export function topicPage({ topic, connection, tab, signal, failed, changes, told }) {
  const path = (further) => topicPath(topic, connection, further);
  const resources = {
    record: new Resource(path("")),
    status: new Resource(path("/status")),
    stats: new Resource(path("/stats"), 4),
    rights: new Resource(path("/rights"), 60),
    subscriptions: new Resource(path("/subscriptions")),
    explain: new Resource(path("/autoScale/explain"), 4),
    policy: new Resource(path("/autoScalePolicy/effective"), 10),
  };
  const name = `topic://${topic.join("/")}`;
  const asked = () => Object.values(resources).forEach((one) => one.hurry());
  const glance = el("div", { class: "glance" });
  const panels = new Map();
  const tabs = TABS.map(([key, label]) =>
    el("button", {
      type: "button",
      role: "tab",
      id: `tab-${key}`,
      "aria-controls": "panel",
      "data-key": key,
      text: label,
      on: { click: () => show(key) },
    }),
  );
  const panel = el("div", { role: "tabpanel", id: "panel", tabindex: "0" });
  let shown = "";

  function show(key) {
    const found = TABS.find(([one]) => one === key) ?? TABS[0];
    shown = found[0];
    if (!panels.has(shown)) {
      panels.set(shown, new found[2]({ topic, connection, resources, changes: changes.allowed, asked, signal }));
    }
    for (const one of tabs) {
      const here = one.dataset.key === shown;
      one.setAttribute("aria-selected", String(here));
      one.tabIndex = here ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${shown}`);
    panel.replaceChildren(panels.get(shown).element);
    // In the address, and yet no further step back.
    history.replaceState(null, "", fragmentOf(topic, connection, shown));
    draw();
    void refresh().catch(() => {});
  }

  function move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) {
      event.preventDefault();
      const next = tabs[(tabs.findIndex((one) => one.dataset.key === shown) + step + tabs.length) % tabs.length];
      show(next.dataset.key);
      next.focus();
    }
  }

  async function refresh() {
    const wanted = new Set([...GLANCE, ...panels.get(shown).needs]);
    await Promise.all([
      ...[...wanted].map((one) => resources[one].refresh(signal)),
      panels.get(shown).refresh?.(signal),
    ]);
    if (!signal.aborted) {
      draw();
    }
  }

  function draw() {
    const { status, stats, record, rights } = resources;
    fill(glance, JSON.stringify([status.version, stats.version, record.version]), () => seen(resources));
    if (rights.value) {
      told(rights.value);
    }
    panels.get(shown).draw();
  }

  changes.listen(() => draw(), signal);
  const element = el(
    "section",
    {},
    el("h1", { tabindex: "-1", text: name }),
    glance,
    el("div", { role: "tablist", "aria-label": "What is shown of the topic", on: { keydown: move } }, tabs),
    panel,
  );
  const start = () => {
    show(tab);
    void poll(refresh, EVERY_SECONDS, signal, failed);
  };
  return { title: name, element, start };
}

function seen({ status, stats, record }) {
  if (status.value === null) {
    return el("p", { class: "hint", text: status.reason || "Asking for the topic…" });
  }
  const { conditions, operation, desiredSegments } = status.value;
  const ready = conditions.find((one) => one.type === "Ready");
  const by = Object.fromEntries(conditions.map((one) => [one.type, one.status]));
  const state = stateOf({ ...status.value, conditions: by, operation: operation?.kind ?? "" });
  const segments = Object.values(record.value?.segments ?? {});
  const active = segments.filter((one) => one.state === "ACTIVE").length;
  const { scaling, ...told } = stats.value ?? {};
  return [
    el(
      "p",
      { class: "said" },
      badge(state),
      operation ? ` ${operation.kind}, step ${operation.step}` : "",
      state !== "Ready" && ready?.message ? ` ${ready.message}` : "",
      status.reason ? el("span", { class: "wrong", text: ` ${status.reason}` }) : "",
    ),
    terms([
      ["Active segments", `${active}${desiredSegments ? ` of ${desiredSegments} desired` : ""}`],
      ["Sealed segments", String(segments.length - active)],
      ["Epoch", record.value ? String(record.value.epoch) : "–"],
      ["In", `${number(told.msgRateIn)} messages/s, ${bytes(told.byteRateIn)}/s`],
      ["Out", `${number(told.msgRateOut)} messages/s, ${bytes(told.byteRateOut)}/s`],
      ["Largest backlog", number(scaling?.maxBacklog)],
      [
        "Load sampled",
        scaling?.loadAgeSeconds === undefined || scaling.loadAgeSeconds === null
          ? "–"
          : `${lasting(scaling.loadAgeSeconds)} ago`,
      ],
      ["Object", `${status.value.namespace}/${status.value.name}`],
      ["Connection", status.value.connection],
      ["Backend", status.value.backend || "–"],
      ["Leader", stats.leader || "–"],
    ]),
    stats.reason ? el("p", { class: "wrong", text: stats.reason }) : null,
  ];
}
