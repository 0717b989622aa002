// What the page shows, and what changes it: the case, the policies, the window of time, the theme.

const SHOWN_AT_FIRST = 4;
const view = { runs: [], shown: [], window: [0, 1], whole: [0, 1], clock: [1000, "seconds"], lanes: null, scheduled: null };

const OVER_TIME = [drawPower, drawBusy, drawQueue, drawSchedule];
const OTHERS = [drawWaits, drawSlowdowns, drawEnergy, drawDifferences];
const breath = () => new Promise((resolve) => setTimeout(resolve));

async function drawAll(charts) {
  for (const chart of charts) {
    chart(view);
    // A page that is being drawn can still be scrolled.
    await breath();
  }
}

function setWindow(from, until) {
  const [begin, end] = view.whole, least = Math.max(1000, (end - begin) / 1e6);
  const length = Math.min(end - begin, Math.max(least, until - from));
  const start = Math.min(end - length, Math.max(begin, from));
  view.window = [start, start + length];
  const isWhole = length >= end - begin;
  byId("window").textContent = isWhole ? `All ${time(length / 1000)}` : `${dateOf(start)} – ${dateOf(start + length)}`;
  return drawAll(OVER_TIME);
}

const ZOOMS = {
  in: ([a, b]) => [a + (b - a) / 4, b - (b - a) / 4],
  out: ([a, b]) => [a - (b - a) / 2, b + (b - a) / 2],
  earlier: ([a, b]) => [a - (b - a) / 2, b - (b - a) / 2],
  later: ([a, b]) => [a + (b - a) / 2, b + (b - a) / 2],
  all: () => { view.lanes = null; return view.whole; },
};

/** What a reader drags in one chart over time, all of them show. */
function followZoom(ranges) {
  setWindow(...(ranges ? ranges.x ?? view.window : ZOOMS.all()));
}

function showPolicies(runs) {
  const buttons = runs.map((run) => {
    const line = swatch(`var(--series-${run.place % SERIES})`, dash(run.place));
    const button = element("button", { type: "button", className: "policy" }, line, run.summary.policy);
    button.setAttribute("aria-pressed", view.shown.includes(run));
    button.addEventListener("click", () => {
      const isShown = view.shown.includes(run);
      view.shown = view.runs.filter((other) => (other === run ? !isShown : view.shown.includes(other)));
      button.setAttribute("aria-pressed", !isShown);
      drawAll([drawPower, drawBusy, drawQueue, drawWaits, drawSlowdowns, drawEnergy]);
    });
    return button;
  });
  byId("policies").replaceChildren(...(runs.length > 1 ? buttons : []));
}

async function showCase(data, place) {
  for (const section of document.querySelectorAll(".case")) section.hidden = Number(section.dataset.case) !== place;
  const { runs, references } = data.cases[place];
  view.runs = runs.map((at) => data.runs[at]);
  // What others are compared with, the policy that was asked for first, and the best.
  const asked = references ? runs.indexOf(references) : 0;
  const others = view.runs.filter((_, at) => at >= references && at !== asked);
  const first = [...view.runs.slice(0, references), view.runs[asked], ...others].slice(0, SHOWN_AT_FIRST);
  view.shown = view.runs.filter((run) => first.includes(run));
  const begin = Math.min(...view.runs.map((run) => run.begin)), end = Math.max(...view.runs.map((run) => run.end));
  view.whole = [begin, Math.max(end, begin + 1000)];
  view.clock = clockFor(view.whole[1] - begin);
  setCalendarOf(view.runs);
  view.lanes = null;
  const names = view.runs.map((run, at) => [at, run.summary.policy]);
  for (const id of ["schedule-run", "differences-from", "differences-to"]) chooseAmong(byId(id), names);
  if (view.runs.length > 1 && byId("differences-from").value === byId("differences-to").value) {
    byId("differences-from").value = references ? references - 1 : 1;
    byId("differences-to").value = asked;
  }
  byId("schedule-run").parentElement.hidden = view.runs.length < 2;
  showPolicies(view.runs);
  await setWindow(...view.whole);
  await drawAll(OTHERS);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", theme === "dark" ? "Switch to light colours" : "Switch to dark colours");
}

async function begin() {
  document.querySelectorAll(".ranking").forEach(watchHeadings);
  const system = matchMedia("(prefers-color-scheme: dark)");
  setTheme(system.matches ? "dark" : "light");
  const data = await loaded();
  if (!data.runs.length) return;
  byId("charts").hidden = false;

  const changeTheme = (theme) => { setTheme(theme); return drawAll([...OVER_TIME, ...OTHERS]); };
  byId("theme").addEventListener("click", () => changeTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  system.addEventListener("change", () => changeTheme(system.matches ? "dark" : "light"));

  chooseAmong(byId("case"), data.cases.map((known, place) => [place, known.name]));
  byId("case-choice").hidden = data.cases.length < 2;
  byId("case").addEventListener("change", () => showCase(data, Number(byId("case").value)));
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => setWindow(...ZOOMS[button.dataset.zoom](view.window)));
  }
  byId("schedule-run").addEventListener("change", () => { view.lanes = null; drawSchedule(view); });
  byId("schedule-colour").addEventListener("change", () => drawSchedule(view));
  for (const id of ["differences-from", "differences-to", "differences-figure"]) byId(id).addEventListener("change", () => drawDifferences(view));
  offerFiles();
  await showCase(data, 0);
}

begin().then(
  () => { document.documentElement.dataset.ready = Math.round(performance.now()); },
  (error) => {
    byId("trouble").hidden = false;
    byId("trouble").textContent = `The charts could not be drawn: ${error.message}. The tables are complete. A browser from 2023 or later is needed.`;
    console.error(error);
  },
);
