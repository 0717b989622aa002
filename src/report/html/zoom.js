// Dragging chooses a part of a chart, a double click shows all of it again. Fingers scroll the page instead.

/** Less than this is a click, and less than that does not choose between low and high. */
const CLICK = 5, SLANT = 20;

/** The part between two places: sides in pixels that are chosen, none along an axis that stays as it is. */
function chosen({ chart: { zoom }, drawn: { area } }, from, to) {
  const within = (value, most) => Math.min(most, Math.max(0, value));
  const across = [from.left, to.left].map((left) => within(left, area.width)).sort((a, b) => a - b);
  const down = [from.top, to.top].map((top) => within(top, area.height)).sort((a, b) => a - b);
  const wide = across[1] - across[0], high = down[1] - down[0];
  const isFlat = zoom === "x" || high < SLANT, isSteep = !isFlat && wide < SLANT;
  if (isSteep ? high < CLICK : wide < CLICK) return null;
  return { across: isSteep ? null : across, down: isFlat ? null : down };
}

/** Shows a part of a chart, or all of it. */
function zoomTo(place, ranges) {
  if (place.chart.onZoom) return place.chart.onZoom(ranges);
  place.zoomed = ranges;
  return redraw(place);
}

function watchZoom(place) {
  let from = null, part = null;
  place.addEventListener("pointerdown", (event) => {
    if (!place.chart?.zoom || event.pointerType === "touch" || event.button !== 0) return;
    const at = pointed(place, event);
    if (!at.isInside) return;
    from = at;
    place.setPointerCapture(event.pointerId);
  });
  place.addEventListener("pointermove", (event) => {
    if (!from || !place.chart) return;
    const { area, over } = place.drawn;
    part = chosen(place, from, pointed(place, event));
    if (!part) return over.replaceChildren();
    const [left, right] = part.across ?? [0, area.width], [top, bottom] = part.down ?? [0, area.height];
    return over.replaceChildren(shape("rect", { x: left, y: top, width: right - left, height: bottom - top, fill: ink("accent"), "fill-opacity": 0.15, stroke: ink("accent") }));
  });
  const end = (isKept) => () => {
    const { x, y } = place.drawn ?? {}, isChosen = from && part && isKept && place.chart;
    const ranges = isChosen && { x: part.across?.map(x.from), y: part.down?.map(y.from).reverse() };
    from = part = null;
    place.drawn?.over.replaceChildren();
    if (isChosen) zoomTo(place, ranges);
  };
  place.addEventListener("pointerup", end(true));
  place.addEventListener("pointercancel", end(false));
  place.addEventListener("dblclick", () => { if (place.chart?.zoom) zoomTo(place, null); });
}
