import assert from "node:assert/strict";
import test from "node:test";

import { load, record, segment } from "./modules.mjs";

const { ago, bytes, hex, ids, lasting, moment, number, percent, range } = await load("format.mjs");
const { inWords, levelOf, loadsOf, mostBacklog, shareOf } = await load("load.mjs");
const { passes, pageOf, sorted, stateOf, valuesOf } = await load("fleet_rows.mjs");
const { fragmentOf, partsOf, placeOf, segmentPath, topicPath } = await load("places.mjs");

test("numbers have three digits that count", () => {
  const shown = [0, 1, 9.994, 12.34, 99.96, 999.4, 999.5, 1234, 5_600_000, -1500].map(number);
  assert.deepEqual(shown, ["0", "1", "9.99", "12.3", "100", "999", "1 k", "1.23 k", "5.6 M", "-1.5 k"]);
  assert.deepEqual([number(null), number(undefined), number(Number.NaN), bytes(null)], ["–", "–", "–", "–"]);
  assert.deepEqual([bytes(12), bytes(12_000)], ["12 B", "12 kB"]);
  assert.deepEqual([percent(0.126), percent(null)], ["13 %", "–"]);
});

test("times are told in the unit that fits", () => {
  assert.deepEqual([0, 119, 120, 7199, 7200, 172_800].map(lasting), ["0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
  assert.equal(ago(1000, 6000), "5 s ago");
  assert.equal(ago(0, 6000), "–");
  assert.equal(moment("2026-11-30T12:00:00.123Z"), "2026-11-30 12:00:00 UTC");
  assert.deepEqual([moment(null), moment("soon")], ["–", "soon"]);
});

test("ids and ranges are short", () => {
  assert.equal(ids([7, 3, 4, 5, 0, 9, 10]), "0, 3–5, 7, 9, 10");
  assert.equal(ids([]), "–");
  assert.deepEqual([hex(255), range(0, 0x7fff)], ["00ff", "0000-7fff"]);
});

test("the load of a segment is its largest rate against its threshold", () => {
  const knobs = {
    "split.msgRateIn": 100,
    "split.bytesRateIn": 1000,
    "split.msgRateOut": 0,
    "split.bytesRateOut": 1000,
  };
  assert.equal(shareOf({ msgRateIn: 10, byteRateIn: 700, msgRateOut: 9999, byteRateOut: 100 }, knobs), 0.7);
  assert.equal(shareOf(null, knobs), null);
  assert.equal(shareOf({ msgRateIn: 1 }, null), null);
  assert.deepEqual([null, 0, 0.05, 0.3, 0.6, 0.99, 1, 7].map(levelOf), ["unknown", "0", "1", "2", "3", "4", "5", "5"]);
});

test("sealed segments and those that nothing is told of are not shown as idle", () => {
  const rates = { msgRateIn: 50, byteRateIn: 0, msgRateOut: 0, byteRateOut: 0 };
  const stats = {
    autoScale: { policy: { "split.msgRateIn": 100 } },
    layout: { segments: { 1: { load: rates, backlog: { a: 3, b: 9 } }, 2: { load: null } } },
  };
  const loads = loadsOf(record(1, segment(0, 0, 1, { state: "SEALED" }), segment(1, 2, 3), segment(2, 4, 5)), stats);
  assert.deepEqual(
    [0, 1, 2].map((id) => loads.get(id).level),
    ["sealed", "3", "unknown"],
  );
  assert.deepEqual(
    [0, 1, 2].map((id) => inWords(loads.get(id))),
    ["sealed", "50 % of a split threshold", "load not known"],
  );
  assert.deepEqual(
    [0, 1, 2].map((id) => mostBacklog(loads.get(id).backlog)),
    [null, 9, null],
  );
  assert.equal(loadsOf(record(0, segment(0, 0, 1)), null).get(0).level, "unknown");
});

test("a sealed segment that an ordered subscription has not drained is shown to wait for it", () => {
  const sealed = { state: "SEALED" };
  const one = record(1, segment(0, 0, 1, sealed), segment(1, 2, 3, sealed), segment(2, 4, 5, sealed), segment(3, 6, 7));
  const stream = (subscription, drained, outOfScope = []) => ({
    subscription,
    outOfScope,
    assignment: { version: { term: 1 }, drained, consumers: [] },
  });
  const subscriptions = [
    stream("a", [0, 1]),
    stream("b", [0], [2]),
    { subscription: "queue", outOfScope: [] },
    { ...stream("new", []), assignment: { version: null, drained: [] } },
  ];
  const loads = loadsOf(one, null, subscriptions);
  assert.deepEqual(
    [0, 1, 2, 3].map((id) => loads.get(id).readers),
    [[], ["b"], ["a"], []],
  );
  assert.deepEqual(
    [0, 1, 2, 3].map((id) => loads.get(id).level),
    ["sealed", "draining", "draining", "unknown"],
  );
  assert.equal(inWords(loads.get(1)), "sealed, still read by b");
});

const row = (more) => ({
  topic: "topic://acme/shop/orders",
  namespace: "shop",
  name: "orders",
  connection: "shop/pulsar",
  backend: "Classic",
  conditions: { Ready: "True" },
  operation: "",
  reason: "Reconciled",
  lastAction: "",
  paused: false,
  deleting: false,
  ...more,
});

test("how a topic stands is one word", () => {
  const states = [
    row(),
    row({ conditions: { Ready: "False", Stalled: "True" } }),
    row({ operation: "Split" }),
    row({ conditions: { Reconciling: "True" } }),
    row({ paused: true }),
    row({ deleting: true, paused: true }),
    row({ conditions: {} }),
  ].map(stateOf);
  assert.deepEqual(states, ["Ready", "Stalled", "Working", "Working", "Paused", "Deleting", "Not ready"]);
});

test("a filter lets through what has all of its words and choices", () => {
  assert.ok(passes(row(), { text: " ORD  acme " }));
  assert.ok(!passes(row(), { text: "orders basket" }));
  assert.ok(passes(row(), { state: "Ready", backend: "Classic", namespace: "shop", connection: "shop/pulsar" }));
  assert.ok(!passes(row(), { state: "Stalled" }));
  assert.ok(!passes(row(), { namespace: "vault" }));
  assert.deepEqual(valuesOf([row(), row({ backend: "" }), row({ backend: "Native" })], "backend"), [
    "Classic",
    "Native",
  ]);
});

test("rows are sorted as people do, and what is not known comes last either way", () => {
  const rows = ["t-10", "t-2", null, "t-1"];
  assert.deepEqual(
    sorted(rows, (one) => one, false),
    ["t-1", "t-2", "t-10", null],
  );
  assert.deepEqual(
    sorted(rows, (one) => one, true),
    ["t-10", "t-2", "t-1", null],
  );
  assert.deepEqual(
    sorted([3, 20, 1], (one) => one, true),
    [20, 3, 1],
  );
});

test("a page that there is not any more is the last one", () => {
  const rows = Array.from({ length: 95 }, (_, index) => index);
  assert.deepEqual(pageOf(rows, 9, 50), { number: 1, pages: 2, rows: rows.slice(50) });
  assert.deepEqual(pageOf([], 3, 50), { number: 0, pages: 1, rows: [] });
});

test("places and paths carry any name there and back", () => {
  const topic = ["acme", "shop", "a/b ?#%ü"];
  const fragment = fragmentOf(topic, "shop/pulsar", "policy");
  assert.deepEqual(placeOf(fragment), { page: "topic", topic, connection: "shop/pulsar", tab: "policy" });
  assert.deepEqual(placeOf("#/"), { page: "fleet" });
  assert.deepEqual(placeOf("#/topic/%E0%A4/b/c"), { page: "fleet" });
  assert.deepEqual(partsOf("topic://acme/shop/a/b"), ["acme", "shop", "a/b"]);
  assert.deepEqual(partsOf(" acme/shop/orders "), ["acme", "shop", "orders"]);
  assert.deepEqual(["orders", "acme/shop", "persistent://acme/shop/orders"].map(partsOf), [null, null, null]);
  assert.equal(
    topicPath(topic, "shop/pulsar", "/stats"),
    "admin/v2/scalable/acme/shop/a%2Fb%20%3F%23%25%C3%BC/stats?connection=shop%2Fpulsar",
  );
  assert.equal(
    segmentPath(["a", "b", "c"], "", "0000-7fff-0", "/subscriptions"),
    "admin/v2/segments/a/b/c/0000-7fff-0/subscriptions",
  );
});
