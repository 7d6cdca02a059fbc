import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./modules.mjs";

// Modules that make elements and ask the gateway name where they are, and are only loaded here.
globalThis.document = { baseURI: "http://127.0.0.1/console/" };
const { parts, withClients } = await load("subscriptions_tab.mjs");
const { became, inASentence } = await load("decisions_tab.mjs");
const { shown } = await load("policy_tab.mjs");

test("subscriptions that consumers have made by themselves are shown, too", () => {
  const declared = [{ subscription: "b", type: "STREAM", phase: "Active", declaredBy: "spec" }];
  const found = withClients(declared, { subscriptions: { a: { msgBacklog: 4 }, b: { msgBacklog: 5 } } });
  assert.deepEqual(
    found.map((one) => [one.subscription, one.declaredBy, one.msgBacklog]),
    [
      ["a", "clients", 4],
      ["b", "spec", 5],
    ],
  );
  assert.equal(withClients(declared, null)[0].msgBacklog, null);
});

test("shared segments are named with their buckets", () => {
  assert.equal(
    parts([
      { segment: 3, buckets: [] },
      { segment: 4, buckets: [0, 1, 2] },
    ]),
    "3, 4 (buckets 0–2)",
  );
  assert.equal(parts([]), "–");
});

test("decisions are sentences", () => {
  const action = { kind: "Split", segments: [3], into: 2, buckets: null, reason: "load" };
  assert.equal(inASentence({ action, code: "split" }), "Split of 3 into 2, for load.");
  assert.equal(
    inASentence({ action: { ...action, kind: "Rebucket", buckets: 8, into: 1 }, code: "x" }),
    "Rebucket of 3 to 8 entry buckets, for load.",
  );
  assert.equal(inASentence({ action: null, code: "nothing-to-do" }), "Nothing is to be done (nothing-to-do).");
  assert.equal(became({ parents: [1, 2], children: [5] }), "1, 2 → 5");
  assert.equal(became({}), "–");
});

test("knobs are shown in full", () => {
  assert.deepEqual(
    [true, 0.5, 1_000_000].map((value) => shown({ value })),
    ["true", "0.5", "1,000,000"],
  );
});
