// What a chart shows as a file: its numbers as CSV, or a picture of it as PNG. Nothing leaves the computer.

/** How to write down what a chart shows, by its id: the names of columns, and rows. */
const TABLES = new Map();

/** A number without digits that say nothing. */
const brief = (value) => (typeof value === "number" ? Number(value.toPrecision(7)) : value);

function csv([head, rows]) {
  const cell = (value) => {
    const text = String(brief(value) ?? "");
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [head, ...rows].map((row) => row.map(cell).join(",") + "\n").join("");
}

function saveAs(name, address) {
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

function saveCsv(id) {
  const address = URL.createObjectURL(new Blob([csv(TABLES.get(id)())], { type: "text/csv" }));
  saveAs(`${id}.csv`, address);
  // The browser has taken what it needs by then.
  setTimeout(() => URL.revokeObjectURL(address), 60e3);
}

/** The names beside colours under a chart, in as many rows as they need, and how high these are. */
function legendOf(chart, width) {
  const known = chart.key ?? (chart.lines ?? []), shapes = [];
  let left = 20, row = 0;
  for (const { name, colour, dash: dashes } of known) {
    const wide = 42 + widthOf(name);
    if (left > 20 && left + wide > width - 10) { left = 20; row++; }
    const y = 20 * row + 10;
    shapes.push(shape("line", { x1: left, x2: left + 24, y1: y, y2: y, stroke: colour, "stroke-width": chart.key ? 10 : 2.5, "stroke-dasharray": PATTERNS[dashes] }),
      label(name, left + 30, y + 4, { anchor: "start" }));
    left += wide + 8;
  }
  return [shapes, known.length ? 20 * (row + 1) : 0];
}

/** A picture that stands alone: with a title, with names beside colours, and not transparent. */
async function pngOf(id) {
  const place = byId(id), title = place.closest("section").querySelector("h2").textContent;
  const width = Math.max(640, place.clientWidth), [legend, room] = legendOf(place.chart, width);
  const { svg } = drawing(place.chart, place.zoomed, width, place.clientHeight), below = 40 + place.clientHeight, height = below + room + 16;
  svg.setAttribute("y", 40);
  const whole = shape("svg", { width, height }, shape("rect", { width, height, fill: ink("paper") }), label(title, 20, 26, { anchor: "start", size: 15, weight: 600 }),
    svg, shape("g", { transform: `translate(0 ${below + 4})` }, ...legend));
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(whole))}`;
  await image.decode();
  const canvas = element("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  return canvas.toDataURL("image/png");
}

/** Two buttons for every chart, beside its heading. */
function offerFiles() {
  for (const chart of document.querySelectorAll(".chart")) {
    const section = chart.closest("section"), heading = section.querySelector("h2");
    const button = (text, act) => {
      const made = element("button", { type: "button", textContent: text, title: `Save as ${text}` });
      made.setAttribute("aria-label", `${heading.textContent}: save as ${text}`);
      made.dataset.save = `${chart.id}-${text.toLowerCase()}`;
      made.addEventListener("click", act);
      return made;
    };
    const buttons = element("div", { className: "save" }, button("CSV", () => saveCsv(chart.id)),
      button("PNG", async () => saveAs(`${chart.id}.png`, await pngOf(chart.id))));
    heading.before(buttons);
    // Where there is nothing to see there is nothing to save.
    const watch = () => { buttons.hidden = chart.classList.contains("empty"); };
    new MutationObserver(watch).observe(chart, { attributeFilter: ["class"] });
    watch();
  }
}
