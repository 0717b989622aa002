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

/** A picture that stands alone: with a title, with names beside colours, and not transparent. */
async function pngOf(id) {
  const place = byId(id), title = place.closest("section").querySelector("h2").textContent;
  const { width, height } = place.getBoundingClientRect();
  const data = place.data.map((trace) => ({ ...trace, showlegend: Boolean(trace.name) }));
  const figure = { data, layout: { ...place.layout, title: { text: title, x: 0.02, font: { size: 15 } }, showlegend: data.some((trace) => trace.name),
    legend: { orientation: "h", y: -0.25 }, paper_bgcolor: ink("paper"), margin: { l: 60, r: 20, t: 44, b: 50 } } };
  return Plotly.toImage(figure, { format: "png", scale: 2, width: Math.max(640, Math.round(width)), height: Math.round(height) + 90 });
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
