// What a reader points at, in words: with a mouse by moving it, on a screen that is touched by a tap.

/** The value of a line at a time: the last that began by then; -1 before the first and after the end. */
function placeAt({ x, y }, at) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] <= at) low = middle + 1; else high = middle;
  }
  return at > x.at(-1) || y[low - 1] === null ? -1 : low - 1;
}

/** The point of all lines that is nearest, if it is near. */
function nearest({ lines }, { x, y }, { left, top }) {
  let best = { distance: 30 };
  for (const line of lines) {
    line.x.forEach((value, place) => {
      const distance = Math.hypot(x.to(value) - left, y.to(line.y[place]) - top);
      if (distance < best.distance) best = { distance, line, place };
    });
  }
  return best;
}

const saidOf = (line, place) => element("div", {}, swatch(line.colour, line.dash), `${line.name}: `, element("b", { textContent: line.said(place) }));

/** What there is to say about a place in a chart, and the shapes that show which place it is. */
function about({ chart, drawn }, at) {
  if (typeof chart.hover === "function") return [[chart.hover(at.x, at.y) ?? []].flat(), []];
  if (chart.hover === "nearest") {
    const { line, place } = nearest(chart, drawn, at);
    if (!line) return [[], []];
    const dot = shape("circle", { cx: drawn.x.to(line.x[place]), cy: drawn.y.to(line.y[place]), r: 4, fill: line.colour, stroke: ink("paper") });
    return [[saidOf(line, place)], [dot]];
  }
  const found = chart.lines.map((line) => [line, placeAt(line, at.x)]).filter(([, place]) => place >= 0);
  const dots = found.map(([line, place]) => shape("circle", { cx: at.left, cy: drawn.y.to(line.y[place]), r: 3.5, fill: line.colour, stroke: ink("paper") }));
  const line = shape("line", { x1: at.left, x2: at.left, y1: 0, y2: drawn.area.height, stroke: ink("soft"), "stroke-dasharray": "3 3" });
  return [found.length ? [element("div", { textContent: chart.x.written(at.x) }), ...found.map((one) => saidOf(...one))] : [], [line, ...dots]];
}

function hideHover(place) {
  byId("tip").hidden = true;
  place.hovered = null;
  place.drawn?.over.replaceChildren();
}

function showHover(place, event) {
  const { chart, drawn } = place, at = chart && drawn && pointed(place, event);
  if (!at?.isInside || !chart.hover || event.buttons) return hideHover(place);
  const tip = byId("tip"), [words, shapes] = about(place, at), { clientX, clientY } = event;
  place.hovered = { clientX, clientY };
  drawn.over.replaceChildren(...shapes);
  tip.hidden = !words.length;
  if (tip.hidden) return undefined;
  tip.replaceChildren(...words);
  // Beside the pointer, on the side where there is room.
  const { width, height } = tip.getBoundingClientRect();
  const left = clientX + 14 + width > innerWidth - 4 ? clientX - 14 - width : clientX + 14;
  const top = clientY + 16 + height > innerHeight - 4 ? clientY - 12 - height : clientY + 16;
  tip.style.left = `${Math.max(4, Math.min(left, innerWidth - width - 4))}px`;
  tip.style.top = `${Math.max(4, Math.min(top, innerHeight - height - 4))}px`;
  return undefined;
}

/** A chart that is drawn anew says again what was pointed at. */
function hoverAgain(place) {
  if (place.hovered) showHover(place, place.hovered);
}

function watchHover(place) {
  const isFinger = (event) => event.pointerType === "touch";
  place.addEventListener("pointermove", (event) => { if (!isFinger(event)) showHover(place, event); });
  place.addEventListener("click", (event) => showHover(place, event));
  place.addEventListener("pointerleave", (event) => { if (!isFinger(event)) hideHover(place); });
  const hide = () => { if (place.hovered) hideHover(place); };
  addEventListener("pointerdown", (event) => { if (!place.contains(event.target)) hide(); });
  addEventListener("scroll", hide, { passive: true });
}
