// One way to draw a chart with plotly.js: colours from the style sheet, room for a phone, no logo.

const SERIES = 8, DASHES = ["solid", "dot", "dashdot"];

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The colour and the dash of a run, by its place. */
const tint = (place) => ink(`series-${place % SERIES}`);
const dash = (place) => DASHES[Math.floor(place / SERIES) % DASHES.length];

const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
const faded = (colour, share) => `rgba(${channels(colour)},${share})`;

const isNarrow = () => window.innerWidth < 736;
const isTouched = () => matchMedia("(pointer: coarse)").matches;

/** What all charts have in common. */
function layout(more) {
  const soft = ink("soft"), line = ink("line");
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickcolor: line, automargin: true,
    title: { font: { color: soft, size: 12 }, standoff: 8 }, ticks: "outside", ticklen: 4 };
  const { xaxis = {}, yaxis = {}, ...others } = more;
  const join = (own) => ({ ...axis, ...own, title: { ...axis.title, text: own.title ?? "" } });
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, autosize: true,
    margin: { l: isNarrow() ? 8 : 16, r: 12, t: 8, b: 8 }, hovermode: "x unified",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink("ink") },
    hoverlabel: { bgcolor: ink("paper"), bordercolor: line, font: { color: ink("ink"), size: 12 } },
    dragmode: isTouched() ? false : "zoom",
    xaxis: join(xaxis), yaxis: join(yaxis), ...others,
  };
}

// Zooming is by dragging and by the page's own buttons, which can be reached without a mouse.
const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false };

/** What is to be done once a chart is there: by its id. */
const ONCE_DRAWN = new Map();

/** Draws or redraws a chart; where there is nothing to draw, says so. */
async function draw(id, traces, more, nothing) {
  const place = byId(id);
  if (nothing) {
    if (place.classList.contains("js-plotly-plot")) Plotly.purge(place);
    place.classList.add("empty");
    place.textContent = nothing;
    return place;
  }
  if (place.classList.contains("empty")) {
    place.classList.remove("empty");
    place.textContent = "";
  }
  const isNew = !place.classList.contains("js-plotly-plot");
  await Plotly.react(place, traces, layout(more), CONFIG);
  if (isNew) ONCE_DRAWN.get(id)?.(place);
  return place;
}
