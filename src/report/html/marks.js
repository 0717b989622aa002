// What stands in the plot of a chart: lines with their bands, bars, marks on them, and a painted picture.

const tenth = (pixel) => Math.round(10 * pixel) / 10;

/** The parts of a line between gaps: first and last place of each. */
function unbroken(values) {
  const parts = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i > 0 && values[i - 1] !== null) parts.at(-1)[1] = i;
    else parts.push([i, i]);
  });
  return parts;
}

/** Steps: each value holds until the next. */
function stepsOf(line, values, first, last, { x, y }) {
  let path = `${tenth(x.to(line.x[first]))},${tenth(y.to(values[first]))}`;
  for (let i = first + 1; i <= last; i++) path += `H${tenth(x.to(line.x[i]))}V${tenth(y.to(values[i]))}`;
  return path;
}

/** The same from the end to the start. */
function stepsBack(line, values, first, last, { x, y }) {
  let path = `V${tenth(y.to(values[last]))}`;
  for (let i = last - 1; i >= first; i--) path += `H${tenth(x.to(line.x[i + 1]))}V${tenth(y.to(values[i]))}`;
  return `${path}H${tenth(x.to(line.x[first]))}`;
}

function bandOf(line, scales) {
  const { low, high, share } = line.band;
  const path = unbroken(high).map(([a, b]) => `M${stepsOf(line, high, a, b, scales)}${stepsBack(line, low, a, b, scales)}Z`);
  return shape("path", { d: path.join(""), fill: line.colour, "fill-opacity": share });
}

function lineOf(line, scales) {
  const path = unbroken(line.y).map(([a, b]) => `M${stepsOf(line, line.y, a, b, scales)}`);
  return shape("path", { d: path.join(""), fill: "none", stroke: line.colour, "stroke-width": line.width, "stroke-linejoin": "round",
    "stroke-dasharray": PATTERNS[line.dash], "data-name": line.name });
}

/** A bar at each place, as wide as a share of it; with marks across, lying bars grow to the right. */
function barsOf({ bars, lying }, { x, y }) {
  const along = lying ? x : y, across = lying ? y : x, half = 0.5 * (lying ? 0.6 : 0.85), shapes = [];
  bars.forEach(({ size, colour, mark }, place) => {
    const sides = [across.to(place - half), across.to(place + half)], ends = [along.to(0), along.to(size)];
    const [low, high] = [Math.min(...sides), Math.max(...sides)], [near, far] = [Math.min(...ends), Math.max(...ends)];
    const [left, right, top, bottom] = lying ? [near, far, low, high] : [low, high, near, far];
    shapes.push(shape("rect", { x: tenth(left), y: tenth(top), width: tenth(right - left), height: tenth(bottom - top), fill: colour }));
    if (mark === undefined || mark === null) return;
    const at = tenth(along.to(mark));
    shapes.push(shape("line", { stroke: ink("ink"), "stroke-width": 2, ...(lying ? { x1: at, x2: at, y1: low + 2, y2: high - 2 } : { x1: low + 2, x2: high - 2, y1: at, y2: at }) }));
  });
  return shapes;
}

/** All that stands in a plot of this size. */
function marksOf(chart, scales, { width, height }) {
  const lines = chart.lines ?? [], shapes = [];
  if (chart.paint) shapes.push(shape("image", { href: chart.paint(width, height), width, height, preserveAspectRatio: "none" }));
  if (chart.bars) shapes.push(...barsOf(chart, scales));
  shapes.push(...lines.filter((line) => line.band).map((line) => bandOf(line, scales)), ...lines.map((line) => lineOf(line, scales)));
  if (chart.now !== undefined) {
    const at = tenth(scales.x.to(chart.now));
    shapes.push(shape("line", { x1: at, x2: at, y1: 0, y2: height, stroke: ink("soft"), "stroke-width": 1.5 }));
  }
  return shapes;
}
