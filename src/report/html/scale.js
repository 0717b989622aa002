// From values to pixels and back, and round values to write beside an axis.

const WAYS = {
  linear: { put: (value) => value, take: (value) => value },
  log: { put: Math.log10, take: (value) => 10 ** value },
};

/** The way of an axis from a range of values to a range of pixels. */
function scaleOf(axis, range, [first, last]) {
  const { put, take } = WAYS[axis.log ? "log" : "linear"], [low, high] = range.map(put);
  const one = (last - first) / (high - low);
  return { range, to: (value) => first + (put(value) - low) * one, from: (pixel) => take(low + (pixel - first) / one) };
}

/** What an axis shows: what it says, all its names, or what the values need; from zero, unless it is logarithmic. */
function rangeOf(axis, values) {
  if (axis.range) return axis.range;
  if (axis.names) return [-0.5, axis.names.length - 0.5];
  let least = Infinity, most = axis.log ? 0 : -Infinity;
  for (const value of values) if (value !== null) { least = Math.min(least, value); most = Math.max(most, value); }
  if (!axis.log) return [0, most > 0 ? 1.05 * most : 1];
  return [least, Math.max(most, 1.1 * least)];
}

/** Multiples of 1, 2 or 5 times a power of ten, at most so many, with how each is written. */
function roundTicks([low, high], most) {
  const rough = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
  const digits = Math.min(12, Math.max(0, -Math.floor(Math.log10(step * 1.001)))), ticks = [];
  // Not minus zero, which would be written so.
  for (let count = Math.ceil(low / step - 1e-9) || 0; count * step <= high + step * 1e-9; count++) {
    const value = count * step;
    ticks.push([value, value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })]);
  }
  return ticks;
}

/** Powers of ten; where there are few, two and five times them as well; else what a linear axis has. */
function logTicks([low, high], most) {
  const decades = Math.log10(high / low);
  if (decades < 0.7) return roundTicks([low, high], most);
  const factors = decades < 2.5 ? [1, 2, 5] : [1], skip = Math.ceil(decades / most), ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    if (power % skip) continue;
    for (const value of factors.map((factor) => factor * 10 ** power)) {
      if (value >= low && value <= high) ticks.push([value, value.toLocaleString("en", { maximumSignificantDigits: 3 })]);
    }
  }
  return ticks;
}

/** How many values look well beside an axis of so many pixels, where each needs so many. */
const fewIn = (pixels, each = 110) => 2 + pixels / each;

/** The values beside an axis. */
function ticksOf(axis, range, pixels, each) {
  if (axis.names) return axis.names.map((name, place) => [place, name]);
  if (axis.ticks) return axis.ticks(range, pixels).filter(([value]) => value >= range[0] && value <= range[1]);
  return (axis.log ? logTicks : roundTicks)(range, fewIn(pixels, each));
}
