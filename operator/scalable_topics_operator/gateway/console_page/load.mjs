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

export const UNKNOWN = "unknown";
export const SEALED = "sealed";

// The levels in order, with what each means: for the legend.
export const LEVELS = [
  ["0", "below 5 % of a split threshold"],
  ["1", "below 25 %"],
  ["2", "below 50 %"],
  ["3", "below 75 %"],
  ["4", "below 100 %"],
  ["5", "at a threshold, or above"],
  [UNKNOWN, "load not known"],
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

// Load and backlog of every segment of a record, by id: what pictures and tables show.
export function loadsOf(record, stats) {
  const knobs = stats?.autoScale?.policy ?? null;
  const told = stats?.layout?.segments ?? {};
  const loads = new Map();
  for (const segment of Object.values(record.segments)) {
    const found = told[segment.segmentId];
    const sealed = segment.state !== "ACTIVE";
    const rates = sealed ? null : found?.load ?? null;
    const share = shareOf(rates, knobs);
    loads.set(segment.segmentId, {
      rates,
      share,
      level: sealed ? SEALED : levelOf(share),
      backlog: sealed ? null : found?.backlog ?? null,
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
  return load.share === null ? "load not known" : `${percent(load.share)} of a split threshold`;
}
