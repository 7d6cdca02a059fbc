// Numbers, sizes and times as people read them. Pure.

const NOTHING = "–";
const UNITS = ["", " k", " M", " G", " T", " P"];

// A number with three digits that count; a dash for what is not known.
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) {
    return NOTHING;
  }
  let scaled = Math.abs(value);
  let unit = 0;
  // 999.5 is shown as 1 k, not as 1000.
  while (scaled >= 999.5 && unit < UNITS.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  const digits = scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  return `${value < 0 ? "-" : ""}${Number(scaled.toFixed(digits))}${UNITS[unit]}`;
}

// Bytes.
export function bytes(value) {
  const text = number(value);
  return text === NOTHING ? NOTHING : `${text}${/[a-z]$/i.test(text) ? "" : " "}B`;
}

// A share as a percentage; a dash for what is not known.
export function percent(share) {
  return share === null || share === undefined ? NOTHING : `${Math.round(share * 100)} %`;
}

// A part of the hash ring, both ends included.
export function range(start, end) {
  return `${hex(start)}-${hex(end)}`;
}

// A hash as four hexadecimal digits.
export function hex(hash) {
  return hash.toString(16).padStart(4, "0");
}

// How long ago it was, in milliseconds since 1970; a dash for 0, which stands for unknown.
export function ago(atMs, nowMs) {
  return atMs ? `${lasting((nowMs - atMs) / 1000)} ago` : NOTHING;
}

// A time in seconds, in its largest fitting unit.
export function lasting(seconds) {
  if (seconds === null || seconds === undefined) {
    return NOTHING;
  }
  const whole = Math.max(0, seconds);
  for (const [name, length] of [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
  ]) {
    if (whole >= 2 * length) {
      return `${Math.floor(whole / length)} ${name}`;
    }
  }
  return `${Math.floor(whole)} s`;
}

// A moment as UTC, to the second; a dash for none.
export function moment(at) {
  if (!at) {
    return NOTHING;
  }
  const date = new Date(at);
  return Number.isNaN(date.getTime())
    ? String(at)
    : date
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z$/, " UTC");
}

// Ids in few characters: 0, 3–7, 9.
export function ids(numbers) {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts = [];
  for (let index = 0; index < sorted.length; index += 1) {
    const first = sorted[index];
    while (index + 1 < sorted.length && sorted[index + 1] === sorted[index] + 1) {
      index += 1;
    }
    const last = sorted[index];
    parts.push(last === first ? `${first}` : last === first + 1 ? `${first}, ${last}` : `${first}–${last}`);
  }
  return parts.length ? parts.join(", ") : NOTHING;
}
