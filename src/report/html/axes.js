// The frame of a chart: how much room its labels need, its grid, its labels and titles.

const SIZE = 12, LEADING = 15, TICK = 4, GAP = 4, EDGE = 4;
const fontFamily = () => getComputedStyle(document.body).fontFamily;

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text, size = SIZE) {
  ruler.font = `${size}px ${fontFamily()}`;
  return Math.max(...text.split("\n").map((line) => ruler.measureText(line).width));
}

/** A text cut to a width, line by line. */
function fitted(text, width) {
  const cut = (line) => {
    if (widthOf(line) <= width) return line;
    let length = line.length - 1;
    while (length > 1 && widthOf(`${line.slice(0, length)}…`) > width) length--;
    return `${line.slice(0, length)}…`;
  };
  return text.split("\n").map(cut).join("\n");
}

/** Text at a place; several lines begin there, and if it is turned it ends there. */
function label(text, x, y, { anchor = "middle", colour = ink("ink"), size = SIZE, weight, isTurned } = {}) {
  const lines = text.split("\n").map((line, i) => shape("tspan", { x: tenth(x), dy: i ? LEADING : undefined }, line));
  return shape("text", { x: tenth(x), y: tenth(y), "text-anchor": anchor, fill: colour, "font-size": size, "font-weight": weight,
    "font-family": fontFamily(), transform: isTurned ? `rotate(-90 ${tenth(x)} ${tenth(y)})` : undefined }, ...lines);
}

/** The labels of an axis from left to right that do not overlap. */
function apart(ticks, scale) {
  let free = -Infinity;
  return ticks.filter(([value, text]) => {
    const half = widthOf(text) / 2, at = scale.to(value);
    if (at - half < free) return false;
    free = at + half + 8;
    return true;
  });
}

/** Where the plot of a chart of this size is, with its scales and the labels beside it. */
function framed({ x, y, now }, ranges, width, height) {
  const top = now === undefined ? 10 : 24, right = 14, room = (title) => (title ? LEADING + GAP : 0);
  const labelsUp = (pixels) => ticksOf(y, ranges.y, pixels, 45).map(([value, text]) => [value, fitted(text, 0.4 * width)]);
  const widest = (ticks) => Math.max(0, ...ticks.map(([, text]) => widthOf(text)));

  const left = EDGE + room(y.title) + widest(labelsUp(height - 60)) + GAP + TICK, across = Math.max(40, width - left - right);
  const scale = scaleOf(x, ranges.x, [0, across]), known = ticksOf(x, ranges.x, across);
  // Names that do not fit beside each other are turned; of numbers and dates some are left out.
  const isTurned = Boolean(x.names) && widest(known) + 4 > across / known.length, xTicks = isTurned ? known : apart(known, scale);
  const lines = Math.max(1, ...xTicks.map(([, text]) => text.split("\n").length)), high = isTurned ? widest(known) : LEADING * lines;

  const up = Math.max(40, height - top - TICK - GAP - high - room(x.title) - EDGE);
  return { area: { left, top, width: across, height: up }, x: scale, y: scaleOf(y, ranges.y, [up, 0]), xTicks, yTicks: labelsUp(up), isTurned, high };
}

/** Grid, labels and titles. */
function axesOf(chart, { area, x, y, xTicks, yTicks, isTurned, high }, width) {
  const { left, top } = area, bottom = top + area.height, colour = ink("line"), soft = { colour: ink("soft") }, shapes = [];
  const line = (x1, y1, x2, y2) => shapes.push(shape("line", { x1: tenth(x1), y1: tenth(y1), x2: tenth(x2), y2: tenth(y2), stroke: colour }));
  for (const [value, text] of xTicks) {
    const at = left + x.to(value), half = widthOf(text) / 2;
    line(at, chart.x.names || chart.paint ? bottom : top, at, bottom + TICK);
    // A label at the edge moves inwards rather than being cut off.
    if (isTurned) shapes.push(label(text, at + 4, bottom + TICK + GAP, { anchor: "end", isTurned }));
    else shapes.push(label(text, Math.min(width - half - 1, Math.max(half + 1, at)), bottom + TICK + GAP + 10));
  }
  for (const [value, text] of yTicks) {
    const at = top + y.to(value), lines = text.split("\n").length;
    if (!chart.y.names) line(chart.paint ? left : left + area.width, at, left - TICK, at);
    shapes.push(label(text, left - TICK - GAP, at + 4 - (lines - 1) * LEADING / 2, { anchor: "end" }));
  }
  line(left, top, left, bottom);
  line(left, bottom, left + area.width, bottom);
  if (chart.x.title) shapes.push(label(chart.x.title, left + area.width / 2, bottom + TICK + GAP + high + LEADING, soft));
  if (chart.y.title) shapes.push(label(chart.y.title, EDGE + 10, top + area.height / 2, { ...soft, isTurned: true }));
  if (chart.now !== undefined) shapes.push(label("now", left + x.to(chart.now), top - 7, soft));
  return shapes;
}
