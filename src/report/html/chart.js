// Charts, as SVG. A chart is described by
//
//   x, y    axes: title; range, else what the values need; log, or names of places; ticks(range, pixels), else
//           round values; written(value), for the heading of what a reader points at
//   lines   each with name, colour, dash, width, x, y (null is a gap), said(place), and perhaps a band of low, high
//           and share, which is how much of it covers what is behind
//   bars    one for each name of an axis: size, colour, and perhaps a mark; lying, if the names are those of y
//   paint   the address of a picture of the plot, by its width and height
//   now     a line across, at a value of x
//   key     what colours mean: names and colours, where the lines do not tell
//   hover   what a pointer tells about: "all" lines at its x, the "nearest" point, or what a function of x and y says
//   zoom    what dragging chooses: "x" or "xy"; onZoom(ranges) shows it, and resets it if there are none.
//           Without onZoom the chart does, and goes on while `about` stays the same.

/** A picture of a chart, with its scales. */
function drawing(chart, zoomed, width, height) {
  const values = (key) => function* () {
    for (const line of chart.lines ?? []) { yield* line[key]; if (key === "y" && line.band) yield* line.band.high; }
    for (const { size, mark } of chart.bars ?? []) { yield size; yield mark ?? null; }
  };
  const ranges = { x: zoomed?.x ?? rangeOf(chart.x, values("x")()), y: zoomed?.y ?? rangeOf(chart.y, values("y")()) };
  const frame = framed(chart, ranges, width, height), { left, top, ...size } = frame.area;
  const over = shape("g", {}), plot = shape("svg", { x: left, y: top, ...size, overflow: "hidden" }, ...marksOf(chart, frame, size), over);
  const axes = axesOf(chart, frame, width);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height }, ...(chart.paint ? [plot, ...axes] : [...axes, plot]));
  return { ...frame, svg, over, width, height };
}

/** Draws what a place is to show, in the room that it has. */
function redraw(place) {
  const { chart, clientWidth: width, clientHeight: height } = place;
  if (!chart || !width || !height) return;
  place.drawn = drawing(chart, place.zoomed, width, height);
  place.replaceChildren(place.drawn.svg);
  place.classList.toggle("zooms", Boolean(chart.zoom));
  hoverAgain(place);
}

/** What a chart shows, for those who do not see it. */
function describe(place, chart, nothing) {
  place.dataset.shows ??= place.getAttribute("aria-label") ?? "";
  const names = (chart.lines ?? []).map((line) => line.name).join(", ");
  if (place.dataset.shows) place.setAttribute("aria-label", [place.dataset.shows, nothing || names].filter(Boolean).join(": "));
}

/** Draws or redraws a chart; where there is nothing to draw, says so. */
function draw(id, chart, nothing) {
  const place = byId(id), isNew = !("chart" in place);
  if (place.chart?.about !== chart.about) place.zoomed = null;
  place.chart = nothing ? null : chart;
  place.classList.toggle("empty", Boolean(nothing));
  describe(place, chart, nothing);
  if (nothing) place.replaceChildren(nothing);
  redraw(place);
  if (!isNew) return;
  watchHover(place);
  watchZoom(place);
  let resizing;
  new ResizeObserver(() => {
    clearTimeout(resizing);
    const { drawn } = place;
    if (place.clientWidth !== drawn?.width || place.clientHeight !== drawn?.height) resizing = setTimeout(() => redraw(place), 100);
  }).observe(place);
}

/** Where in the plot of a chart a pointer is: in pixels, and by its axes. */
function pointed(place, { clientX, clientY }) {
  const box = place.getBoundingClientRect(), { area, x, y } = place.drawn;
  const left = clientX - box.left - area.left, top = clientY - box.top - area.top;
  return { left, top, x: x.from(left), y: y.from(top), isInside: left >= 0 && top >= 0 && left <= area.width && top <= area.height };
}
