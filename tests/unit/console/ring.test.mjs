import assert from "node:assert/strict";
import test from "node:test";

import { load, record, segment, splitAndMerged } from "./modules.mjs";

const { neighbour, ringOf, touching } = await load("ring.mjs");

const places = (ring) => Object.fromEntries(ring.blocks.map((one) => [one.id, [one.x0, one.x1, one.y0, one.y1]]));

test("each change of the layout is a column, and the ring is from top to bottom", () => {
  const ring = ringOf(splitAndMerged());
  assert.equal(ring.columns, 3);
  assert.deepEqual(places(ring), {
    0: [0, 1, 0, 0.5],
    1: [1, 2, 0, 0.25],
    2: [1, 2, 0.25, 0.5],
    3: [2, 3, 0, 0.5],
    4: [0, 3, 0.5, 1],
  });
  assert.deepEqual(ring.ticks, [
    { x: 0, value: 0 },
    { x: 1, value: 1 },
    { x: 2, value: 2 },
  ]);
});

test("edges lead from what was sealed to what replaced it, and say by what", () => {
  const edges = ringOf(splitAndMerged()).edges.map(({ from, to, kind }) => `${from.id} ${kind} ${to.id}`);
  assert.deepEqual(edges, ["0 split 1", "0 split 2", "1 merge 3", "2 merge 3"]);
});

test("relatives that were pruned have no edges, and epochs of which nothing is left take no room", () => {
  const { segments } = splitAndMerged();
  const ring = ringOf(record(9, segments[4], { ...segments[3], createdAtEpoch: 7 }));
  assert.deepEqual(ring.edges, []);
  assert.equal(ring.columns, 2);
  assert.deepEqual(places(ring)[3].slice(0, 2), [1, 2]);
});

test("parents that were migrated lie before everything else, although all of it is of epoch 0", () => {
  const ring = ringOf(
    record(
      0,
      segment(0, 0, 0xffff, { state: "SEALED", childIds: [1] }),
      segment(1, 0, 0xffff, { parentIds: [0], createdBy: "Migrate" }),
    ),
  );
  assert.deepEqual(places(ring), { 0: [0, 1, 0, 1], 1: [1, 2, 0, 1] });
  assert.deepEqual(
    ring.edges.map((one) => one.kind),
    ["migrate"],
  );
});

test("true to the clock, a segment is as wide as it lived long", () => {
  const ring = ringOf(splitAndMerged(), { axis: "time", nowMs: 7000 });
  const width = (id) => {
    const [x0, x1] = places(ring)[id];
    return x1 - x0;
  };
  assert.ok(Math.abs(width(1) - 2 * width(0)) < 1e-9, "2 s and 1 s");
  assert.ok(Math.abs(width(3) - 3 * width(0)) < 1e-9, "3 s until now");
  assert.ok(Math.abs(width(4) - ring.columns) < 1e-9);
});

test("times that are not known are the beginning", () => {
  const ring = ringOf(record(0, segment(0, 0, 0xffff, { createdAtMs: 0 })), { axis: "time", nowMs: 5000 });
  assert.deepEqual(places(ring)[0], [0, 1, 0, 1]);
});

test("with even heights the narrowest range is as high as the widest", () => {
  const ring = ringOf(record(0, segment(0, 0, 0), segment(1, 1, 0x7fff), segment(2, 0x8000, 0xffff)), { even: true });
  const heights = ring.blocks.map((one) => one.y1 - one.y0);
  for (const height of heights) {
    assert.ok(Math.abs(height - 1 / 3) < 1e-9);
  }
  const marks = ring.marks.map((one) => one.y);
  assert.deepEqual(
    [...marks].sort((a, b) => a - b),
    marks,
  );
  assert.equal(marks[0], 0);
  assert.equal(marks.at(-1), 1);
});

test("blocks of a long history tile every column", () => {
  const segments = [segment(0, 0, 0xffff, { childIds: [1, 2], state: "SEALED", sealedAtEpoch: 1 })];
  let [left, right, epoch] = [1, 2, 1];
  segments.push(segment(1, 0, 0x7fff, { createdAtEpoch: 1 }), segment(2, 0x8000, 0xffff, { createdAtEpoch: 1 }));
  for (let id = 3; id < 500; id += 1) {
    const old = segments[id % 2 ? left : right];
    epoch += 1;
    Object.assign(old, { state: "SEALED", sealedAtEpoch: epoch, childIds: [id] });
    segments.push(
      segment(id, old.hashRange.start, old.hashRange.end, {
        createdAtEpoch: epoch,
        parentIds: [old.segmentId],
        createdBy: "Rebucket",
      }),
    );
    [left, right] = id % 2 ? [id, right] : [left, id];
  }
  const ring = ringOf(record(epoch, ...segments));
  for (let column = 0; column < ring.columns; column += 1) {
    const covered = ring.blocks
      .filter((one) => one.x0 <= column && one.x1 > column)
      .reduce((sum, one) => sum + one.y1 - one.y0, 0);
    assert.ok(Math.abs(covered - 1) < 1e-9, `column ${column}`);
  }
});

test("arrow keys lead to neighbours on the ring, parents and children", () => {
  const { blocks } = ringOf(splitAndMerged());
  const way = (id, ...keys) => keys.reduce((at, key) => neighbour(blocks, at, key), id);
  assert.equal(way(3, "ArrowDown"), 4);
  assert.equal(way(4, "ArrowUp"), 3, "of several the latest");
  assert.equal(way(3, "ArrowLeft"), 1);
  assert.equal(way(1, "ArrowDown"), 2);
  assert.equal(way(2, "ArrowUp", "ArrowLeft"), 0);
  assert.equal(way(0, "ArrowRight", "ArrowRight"), 3);
  assert.equal(way(3, "ArrowRight"), 3);
  assert.equal(way(3, "ArrowUp"), 3);
  assert.equal(way(1, "Home"), 0);
  assert.equal(way(1, "End"), 4);
  assert.equal(way(99, "ArrowUp"), 4, "one that is gone");
});

test("a segment can be merged with active ones that touch it", () => {
  const four = record(
    0,
    segment(0, 0, 0x3fff),
    segment(1, 0x4000, 0x7fff),
    segment(2, 0x8000, 0xbfff),
    segment(3, 0xc000, 0xffff),
  );
  assert.deepEqual(touching(four, 1), [0, 2]);
  assert.deepEqual(touching(four, 0), [1]);
  assert.deepEqual(touching(splitAndMerged(), 3), [4]);
});
