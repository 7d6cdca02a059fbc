import assert from "node:assert/strict";
import test from "node:test";

import { load, record, segment } from "./modules.mjs";
import { pretendPage } from "./page.mjs";

pretendPage();
const { loadsOf } = await load("load.mjs");
const { RingPicture } = await load("ring_picture.mjs");

const RECORD = record(0, segment(0, 0, 0x7fff), segment(1, 0x8000, 0xffff));

// Loads of both segments, at thresholds of 1: shares of them.
function loads(...shares) {
  const told = shares.map((share, id) => [id, { load: { msgRateIn: 0, byteRateOut: share }, backlog: null }]);
  return loadsOf(RECORD, {
    autoScale: { policy: { "split.bytesRateOut": 1 } },
    layout: { segments: Object.fromEntries(told) },
  });
}

const drawn = (picture) => picture.svg.all.filter((one) => one.attributes.role === "option");
const colours = (picture) => drawn(picture).map((one) => one.attributes.class);

test("a block has the colour of its level, also where the words of two levels are the same", () => {
  const picture = new RingPicture({ choose: () => {} });
  picture.draw(RECORD, loads(0.746, 0.3), { axis: "epoch" });
  assert.deepEqual(colours(picture), ["block level-3", "block level-2"]);
  const said = drawn(picture).map((one) => one.attributes["aria-label"]);
  picture.recolour(loads(0.75, 0.3));
  assert.deepEqual(
    drawn(picture).map((one) => one.attributes["aria-label"]),
    said,
  );
  assert.deepEqual(colours(picture), ["block level-4", "block level-2"]);
});

test("blocks about which nothing else is said stay as they are", () => {
  const picture = new RingPicture({ choose: () => {} });
  picture.draw(RECORD, loads(0.5, 0.3), { axis: "epoch" });
  const [before, other] = drawn(picture);
  picture.recolour(loads(0.5, 0.6));
  const [after, recoloured] = drawn(picture);
  assert.equal(after, before);
  assert.notEqual(recoloured, other);
  assert.equal(recoloured.attributes.class, "block level-3");
});
