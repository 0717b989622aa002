// Colours and dashes of charts. They are attributes of the shapes, so that a picture that leaves the page keeps them.

const SERIES = 8, DASHES = ["solid", "dot", "dashdot"];

/** Dashes as SVG writes them, and as borders in the style sheet are called. */
const PATTERNS = { dot: "3 3", dash: "9 6", dashdot: "9 3 3 3" };
const BORDERS = { dot: "dotted", dash: "dashed", dashdot: "dashed" };

/** A colour of the style sheet, as the theme has it now. */
function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The colour and the dash of a run, by its place. */
const tint = (place) => ink(`series-${place % SERIES}`);
const dash = (place) => DASHES[Math.floor(place / SERIES) % DASHES.length];

const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

/** A short line of a colour and a dash, beside a name. */
function swatch(colour, dashes) {
  const made = element("i", { className: "swatch" });
  made.style.setProperty("--tint", colour);
  made.style.setProperty("--dash", BORDERS[dashes] ?? "solid");
  return made;
}

/** An element of SVG; attributes that are undefined are left out. */
function shape(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
