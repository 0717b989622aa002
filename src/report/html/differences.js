// Two policies job by job: who gains, who loses, and by how much.

const STEPS = {
  wait: { of: (run, job) => run.wait[job] / 1000, ends: [60, 600, 3600, 6 * 3600, 86400], words: ["1 min", "10 min", "1 h", "6 h", "1 day"],
    better: "earlier", worse: "later", written: time },
  slowdown: { of: (run, job) => run.slowdown[job] / 10000, ends: [0.1, 1, 5, 20, 100], words: ["0.1", "1", "5", "20", "100"],
    better: "less slowed", worse: "more slowed", written: (value) => value.toFixed(2) },
};
const LARGEST = 8;

/** Where a difference belongs: 0 is none, 1 up to the first end, and so on; negative if it is a gain. */
function stepOf(difference, ends) {
  const size = Math.abs(difference);
  if (size < 1e-9) return 0;
  let step = 1;
  while (step <= ends.length && size > ends[step - 1]) step++;
  return difference < 0 ? -step : step;
}

function drawDifferences(view) {
  const section = byId("differences-section");
  section.hidden = view.runs.length < 2;
  if (section.hidden) return;
  const from = view.runs[Number(byId("differences-from").value)], to = view.runs[Number(byId("differences-to").value)];
  const figure = STEPS[byId("differences-figure").value], ran = (run, job) => run.state[job] < 2;
  const bins = new Map(), rows = [];
  let gain = 0, loss = 0, same = 0;
  for (let job = 0; job < from.state.length; job++) {
    if (!ran(from, job) || !ran(to, job)) continue;
    const difference = figure.of(to, job) - figure.of(from, job), step = stepOf(difference, figure.ends);
    bins.set(step, (bins.get(step) ?? 0) + 1);
    if (step < 0) gain++; else if (step > 0) loss++; else same++;
    rows.push([difference, job]);
  }
  const [one, other] = [from.summary.policy, to.summary.policy];
  byId("differences-about").textContent = from === to
    ? "Choose two policies that differ."
    : `Of ${counted(rows.length, "job")} that ran under both${from.rest ? " and that this page holds one by one, those with the most node time" : ""}, ${gain.toLocaleString("en")} are ${figure.better} under ${other} than under ${one}, ${loss.toLocaleString("en")} are ${figure.worse}, and ${same.toLocaleString("en")} are the same.`;

  const most = figure.ends.length + 1, steps = Array.from({ length: 2 * most + 1 }, (_, i) => i - most);
  const word = (step) => {
    if (step === 0) return "same";
    const size = Math.abs(step), sign = step < 0 ? "−" : "+";
    return size === most ? `${sign} more` : `${sign} ≤ ${figure.words[size - 1]}`;
  };
  const colour = (step) => (step === 0 ? ink("soft") : ink(step < 0 ? "gain" : "loss"));
  const bars = steps.map((step) => ({ size: bins.get(step) ?? 0, colour: colour(step) })), names = steps.map(word);
  const hover = (x) => `${counted(bars[Math.round(x)].size, "job")}: ${names[Math.round(x)]}`;
  TABLES.set("differences", () => [["difference", "jobs"], steps.map((step) => [word(step), bins.get(step) ?? 0])]);
  draw("differences", { x: { title: `${figure.better}  ←  →  ${figure.worse}`, names }, y: { title: "jobs" }, bars, hover },
    rows.length ? "" : "No job ran under both.");

  rows.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const ends = rows.length > 2 * LARGEST ? [...rows.slice(0, LARGEST), ...rows.slice(-LARGEST)] : rows;
  const head = ["Job", "Nodes", "Submitted", `Under ${one}`, `Under ${other}`, "Difference"];
  const cell = (text) => element("td", { textContent: text });
  const signed = (value) => `${value < 0 ? "−" : "+"} ${figure.written(Math.abs(value))}`;
  byId("differences-table").replaceChildren(
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col", textContent: text })))),
    element("tbody", {}, ...(from === to ? [] : ends.filter(([difference]) => difference !== 0)).map(([difference, job]) =>
      element("tr", {}, ...[jobName(from.workload, job), to.nodes[job], dateOf(from.workload.submit[job]),
        figure.written(figure.of(from, job)), figure.written(figure.of(to, job)), signed(difference)].map(cell)))));
}
