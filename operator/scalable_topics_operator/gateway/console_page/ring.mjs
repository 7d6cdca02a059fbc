// The ring over time: where each segment of a record lies in the picture, and which became which. Pure.
//
// Coordinates: x counts columns from the left, y is 0 at hash 0000 and 1 behind hash ffff.

const HASHES = 65536;

// Lay a record out.
//
// record: as pip-468 writes it.
// options.axis: "epoch" gives each change of the layout a column, "time" is true to the clock.
// options.even: give every part of the ring the same height, however narrow it is.
// options.nowMs: milliseconds since 1970, the right edge of axis "time".
export function ringOf(record, { axis = "epoch", even = false, nowMs = 0 } = {}) {
  const segments = Object.values(record.segments).sort((a, b) => a.segmentId - b.segmentId);
  const columns = axis === "time" ? timeColumns(segments, nowMs) : epochColumns(segments, record.epoch);
  const height = heights(segments, even);
  const blocks = segments.map((segment) => ({
    id: segment.segmentId,
    ...columns.extent(segment),
    y0: height(segment.hashRange.start),
    y1: height(segment.hashRange.end + 1),
    active: segment.state === "ACTIVE",
    segment,
  }));
  return { blocks, edges: edgesOf(blocks), columns: columns.count, ticks: columns.ticks, marks: marksOf(height) };
}

// Into how many entry buckets a segment is divided.
export function bucketsOf(segment) {
  return (segment.entryBucketSplits?.length ?? 0) + 1;
}

// Where the record began: parents that were migrated are sealed at the epoch that they were made at.
function beginOf(segment) {
  const sealed = segment.state !== "ACTIVE";
  return sealed && segment.sealedAtEpoch <= segment.createdAtEpoch ? segment.sealedAtEpoch - 1 : segment.createdAtEpoch;
}

function epochColumns(segments, epoch) {
  const ends = (segment) => (segment.state === "ACTIVE" ? epoch + 1 : segment.sealedAtEpoch);
  const moments = [...new Set(segments.flatMap((one) => [beginOf(one), ends(one)]))].sort((a, b) => a - b);
  // Epochs at which nothing in the record changed, as those of a prune, take no room.
  const places = new Map(moments.map((moment, index) => [moment, index]));
  return {
    count: Math.max(1, moments.length - 1),
    extent: (segment) => ({ x0: places.get(beginOf(segment)), x1: places.get(ends(segment)) }),
    ticks: moments.slice(0, -1).map((moment, index) => ({ x: index, value: Math.max(0, moment) })),
  };
}

function timeColumns(segments, nowMs) {
  const known = segments.flatMap((one) => [one.createdAtMs, one.sealedAtMs]).filter((one) => one > 0);
  const first = known.length ? Math.min(...known) : nowMs;
  const last = Math.max(nowMs, ...known, first + 1);
  const count = Math.max(1, new Set(known).size);
  const place = (ms) => ((ms - first) / (last - first)) * count;
  const extent = (segment) => {
    const x0 = place(segment.createdAtMs || first);
    const x1 = segment.state === "ACTIVE" ? count : place(segment.sealedAtMs || segment.createdAtMs || first);
    return { x0, x1: Math.max(x0, x1) };
  };
  const steps = 6;
  const ticks = Array.from({ length: steps }, (_, index) => ({
    x: (index / steps) * count,
    value: first + ((last - first) * index) / steps,
  }));
  return { count, extent, ticks };
}

function heights(segments, even) {
  if (!even) {
    return (hash) => hash / HASHES;
  }
  const bounds = new Set([0, HASHES]);
  for (const { hashRange } of segments) {
    bounds.add(hashRange.start).add(hashRange.end + 1);
  }
  const sorted = [...bounds].sort((a, b) => a - b);
  const ranks = new Map(sorted.map((hash, index) => [hash, index / (sorted.length - 1)]));
  return (hash) => ranks.get(hash) ?? interpolated(sorted, hash);
}

function interpolated(sorted, hash) {
  const above = sorted.findIndex((bound) => bound > hash);
  const [low, high] = [sorted[above - 1], sorted[above]];
  return (above - 1 + (hash - low) / (high - low)) / (sorted.length - 1);
}

function marksOf(height) {
  return [0, 0x4000, 0x8000, 0xc000, HASHES].map((hash) => ({ y: height(hash), hash: Math.min(hash, HASHES - 1) }));
}

function edgesOf(blocks) {
  const byId = new Map(blocks.map((block) => [block.id, block]));
  return blocks.flatMap((from) =>
    from.segment.childIds
      .map((id) => byId.get(id))
      .filter((to) => to !== undefined)
      .map((to) => ({ from, to, kind: to.segment.createdBy.toLowerCase() })),
  );
}

// Where an arrow key leads from a segment: up and down to the nearest part of the ring that was there at the same time,
// left to a parent, right to a child; the segment itself where there is nothing.
export function neighbour(blocks, id, key) {
  const byId = new Map(blocks.map((block) => [block.id, block]));
  const here = byId.get(id);
  if (here === undefined) {
    return blocks.length ? blocks[blocks.length - 1].id : null;
  }
  const related = (ids) => ids.find((one) => byId.has(one)) ?? id;
  const beside = blocks.filter((one) => one.x0 < here.x1 && one.x1 > here.x0);
  // Of several at the same place the latest.
  const nearest = (found, distance) =>
    found.reduce((best, one) => ((distance(one) - distance(best) || best.x1 - one.x1) < 0 ? one : best), found[0])
      ?.id ?? id;
  switch (key) {
    case "ArrowLeft":
      return related(here.segment.parentIds);
    case "ArrowRight":
      return related(here.segment.childIds);
    case "ArrowUp":
      return nearest(
        beside.filter((one) => one.y1 <= here.y0),
        (one) => here.y0 - one.y1,
      );
    case "ArrowDown":
      return nearest(
        beside.filter((one) => one.y0 >= here.y1),
        (one) => one.y0 - here.y1,
      );
    case "Home":
      return blocks[0].id;
    case "End":
      return blocks[blocks.length - 1].id;
    default:
      return id;
  }
}

// Active segments that touch a segment on the ring, in the ring's order: those it can be merged with.
export function touching(record, id) {
  const { start, end } = record.segments[id].hashRange;
  return Object.values(record.segments)
    .filter((one) => one.state === "ACTIVE" && (one.hashRange.end + 1 === start || one.hashRange.start === end + 1))
    .sort((a, b) => a.hashRange.start - b.hashRange.start)
    .map((one) => one.segmentId);
}
