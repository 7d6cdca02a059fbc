// How loaded a segment is, against the thresholds at which it would be split. Pure.

import { percent } from "./format.mjs";

// Rates as stats name them, and as the knobs do.
const METRICS = [
  ["msgRateIn", "split.msgRateIn"],
  ["byteRateIn", "split.bytesRateIn"],
  ["msgRateOut", "split.msgRateOut"],
  ["byteRateOut", "split.bytesRateOut"],
];
const STEPS = [0.05, 0.25, 0.5, 0.75, 1];

const UNKNOWN = "unknown";
const SEALED = "sealed";
const DRAINING = "draining";

// The levels in order, with what each means: for the legend.
export const LEVELS = [
  ["0", "below 5 % of a split threshold"],
  ["1", "below 25 %"],
  ["2", "below 50 %"],
  ["3", "below 75 %"],
  ["4", "below 100 %"],
  ["5", "at a threshold, or above"],
  [UNKNOWN, "load not known"],
  [DRAINING, "sealed, and still read by an ordered subscription"],
  [SEALED, "sealed"],
];

// The largest of the four rates, each as a share of its threshold; null where nothing is known.
export function shareOf(load, knobs) {
  if (!load || !knobs) {
    return null;
  }
  const shares = METRICS.filter(([, knob]) => knobs[knob] > 0).map(([rate, knob]) => (load[rate] || 0) / knobs[knob]);
  return shares.length ? Math.max(...shares) : null;
}

// The level of a share, as in LEVELS.
export function levelOf(share) {
  if (share === null) {
    return UNKNOWN;
  }
  return String(STEPS.filter((step) => share >= step).length);
}

// Names of the ordered subscriptions that a sealed segment still waits for.
function readersOf(segmentId, subscriptions) {
  return (subscriptions ?? [])
    .filter(
      (one) =>
        one.assignment?.version && !one.assignment.drained.includes(segmentId) && !one.outOfScope.includes(segmentId),
    )
    .map((one) => one.subscription);
}

// Load and backlog of every segment of a record, by id: what pictures and tables show.
//
// subscriptions: those of the topic; null where they are not known.
export function loadsOf(record, stats, subscriptions = null) {
  const knobs = stats?.autoScale?.policy ?? null;
  const told = stats?.layout?.segments ?? {};
  const loads = new Map();
  for (const segment of Object.values(record.segments)) {
    const found = told[segment.segmentId];
    const sealed = segment.state !== "ACTIVE";
    const rates = sealed ? null : (found?.load ?? null);
    const share = shareOf(rates, knobs);
    const readers = sealed ? readersOf(segment.segmentId, subscriptions) : [];
    const ended = readers.length ? DRAINING : SEALED;
    loads.set(segment.segmentId, {
      rates,
      share,
      readers,
      level: sealed ? ended : levelOf(share),
      backlog: sealed ? null : (found?.backlog ?? null),
    });
  }
  return loads;
}

// The largest backlog that a subscription has on a segment; null where none is known.
export function mostBacklog(backlog) {
  return backlog ? Math.max(0, ...Object.values(backlog)) : null;
}

// A load in words, for those who see no colours.
export function inWords(load) {
  if (load.level === SEALED) {
    return "sealed";
  }
  if (load.level === DRAINING) {
    return `sealed, still read by ${load.readers.join(", ")}`;
  }
  return load.share === null ? "load not known" : `${percent(load.share)} of a split threshold`;
}
