// Where the console's modules are.

const FOLDER = new URL("../../../operator/scalable_topics_operator/gateway/console_page/", import.meta.url);

export function load(name) {
  return import(new URL(name, FOLDER));
}

// A segment of a record as pip-468 writes it.
export function segment(segmentId, start, end, more = {}) {
  return {
    segmentId,
    hashRange: { start, end },
    state: "ACTIVE",
    parentIds: [],
    childIds: [],
    createdAtEpoch: 0,
    sealedAtEpoch: 0,
    createdAtMs: 1000,
    sealedAtMs: 0,
    entryBucketSplits: [],
    mergeDepth: 0,
    createdBy: "Create",
    ...more,
  };
}

export function record(epoch, ...segments) {
  return {
    epoch,
    nextSegmentId: segments.length,
    segments: Object.fromEntries(segments.map((one) => [one.segmentId, one])),
  };
}

// Segment 0 split into 1 and 2, these merged into 3, beside segment 4 that stays.
export function splitAndMerged() {
  return record(
    2,
    segment(0, 0, 0x7fff, { state: "SEALED", childIds: [1, 2], sealedAtEpoch: 1, sealedAtMs: 2000 }),
    segment(4, 0x8000, 0xffff),
    segment(1, 0, 0x3fff, {
      state: "SEALED",
      parentIds: [0],
      childIds: [3],
      createdAtEpoch: 1,
      createdAtMs: 2000,
      sealedAtEpoch: 2,
      sealedAtMs: 4000,
      createdBy: "Split",
    }),
    segment(2, 0x4000, 0x7fff, {
      state: "SEALED",
      parentIds: [0],
      childIds: [3],
      createdAtEpoch: 1,
      createdAtMs: 2000,
      sealedAtEpoch: 2,
      sealedAtMs: 4000,
      createdBy: "Split",
    }),
    segment(3, 0, 0x7fff, { parentIds: [1, 2], createdAtEpoch: 2, createdAtMs: 4000, createdBy: "Merge" }),
  );
}
