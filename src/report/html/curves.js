// Curves over time, distributions, and energy.

/** The most points of a curve that are drawn at once. */
const POINTS = 700;

/** What a curve says between two times: as it is if there is little of it, else in equal parts. */
function within(curve, end, from, until) {
  const times = curve.from;
  let first = 0, last = times.length;
  while (first + 1 < times.length && times[first + 1] <= from) first++;
  while (last > first + 1 && times[last - 1] >= until) last--;
  const stop = (i) => (i + 1 < times.length ? times[i + 1] : end);
  const seen = { x: [], low: [], high: [], mean: [] };
  const put = (x, low, high, mean) => { seen.x.push(x); seen.low.push(low); seen.high.push(high); seen.mean.push(mean); };
  if (last - first <= POINTS) {
    for (let i = first; i < last; i++) put(Math.max(times[i], from), curve.low[i], curve.high[i], curve.mean[i]);
  } else {
    const width = (until - from) / POINTS;
    let i = first;
    for (let part = 0; part < POINTS; part++) {
      const a = from + part * width, b = a + width;
      while (i + 1 < last && stop(i) <= a) i++;
      let low = Infinity, high = -Infinity, sum = 0, length = 0;
      for (let j = i; j < last && times[j] < b; j++) {
        const shared = Math.min(stop(j), b) - Math.max(times[j], a);
        if (shared <= 0) continue;
        low = Math.min(low, curve.low[j]);
        high = Math.max(high, curve.high[j]);
        sum += curve.mean[j] * shared;
        length += shared;
      }
      if (length > 0) put(a, low, high, sum / length);
    }
  }
  // The last value holds until the end of the window, or of the run.
  if (seen.x.length) put(Math.min(until, end), seen.low.at(-1), seen.high.at(-1), seen.mean.at(-1));
  return seen;
}

/** What curves of several runs show, as a table. Values are scaled to the unit that their columns name. */
function curveTable(view, series, unit) {
  const dated = calendar ? ["date"] : [];
  const head = ["policy", "time_s", ...dated, `mean_${unit}`, `lowest_${unit}`, `highest_${unit}`];
  const rows = series.flatMap(([name, curve, end, scale]) => {
    const seen = within(curve, end, ...view.window);
    return seen.x.map((at, i) => [name, at / 1000, ...(calendar ? [dateOf(at)] : []), ...[seen.mean, seen.low, seen.high].map((of) => of[i] * scale)]);
  });
  return [head, rows];
}

/** The line of one run, with its band. */
function curveLine(view, run, curve, scale, written) {
  const { x, low, high, mean } = within(curve, run.end, ...view.window), by = (values) => values.map((value) => value * scale);
  return { name: run.summary.policy, colour: tint(run.place), dash: dash(run.place), width: 1.6, x, y: by(mean),
    band: { low: by(low), high: by(high), share: 0.16 }, said: (place) => written(mean[place]) };
}

/** Time in milliseconds, with dates where they are known. */
function timeAxis(view) {
  const [size, name] = view.clock;
  const sinceStart = (range, pixels) => roundTicks(range.map((at) => at / size), fewIn(pixels)).map(([at, text]) => [at * size, text]);
  return { title: calendar ? `time in ${calendar.timeZone}` : `time (${name})`, range: view.window, written: dateOf,
    ticks: calendar ? (range, pixels) => dateMarks(range, fewIn(pixels)) : sinceStart };
}

/** A chart over time: what a reader drags in one of them, all of them show. */
const overTime = (view, y, lines) => ({ x: timeAxis(view), y, lines, hover: "all", zoom: "x", onZoom: followZoom });

function drawPower(view) {
  const runs = view.shown.filter((run) => run.power.from.length);
  const unkept = view.shown.some((run) => run.bars.job.length) ? "The power over time was not recorded." : "No job ran.";
  const nothing = runs.length ? "" : view.shown.length ? unkept : "No policy is shown.";
  const limits = view.shown.filter((run) => run.limit.from.length);
  const most = Math.max(0, ...runs.map((run) => run.summary.peak_power_w), ...limits.map((run) => Math.max(...run.limit.high) / 1000));
  const [size, unit] = unitFor(most, "W");
  const watts = (milliwatts) => scaled(milliwatts / 1000, "W");
  const lines = runs.map((run) => curveLine(view, run, run.power, 1 / 1000 / size, watts));
  if (limits.length) {
    const [run] = limits, seen = within(run.limit, Math.max(...limits.map((run) => run.end)), ...view.window);
    lines.push({ name: "budget", colour: ink("ink"), dash: "dash", width: 1.5, x: seen.x,
      y: seen.mean.map((limit) => (limit > 0 ? limit / 1000 / size : null)), said: (place) => watts(seen.mean[place]) });
  }
  TABLES.set("power", () => curveTable(view, [...runs.map((run) => [run.summary.policy, run.power, run.end, 1 / 1000]),
    ...limits.slice(0, 1).map((run) => ["budget", run.limit, run.end, 1 / 1000])], "w"));
  draw("power", overTime(view, { title: `power (${unit})` }, lines), nothing);
}

function drawBusy(view) {
  const nothing = view.shown.length ? "" : "No policy is shown.";
  const lines = view.shown.map((run) => {
    const nodes = run.summary.nodes;
    return curveLine(view, run, run.busy, 100 / nodes, (mean) => `${(100 * mean / nodes).toFixed(1)} %`);
  });
  TABLES.set("busy", () => curveTable(view, view.shown.map((run) => [run.summary.policy, run.busy, run.end, 100 / run.summary.nodes]), "percent"));
  draw("busy", overTime(view, { title: "nodes in use (%)", range: [0, 102] }, lines), nothing);
}

function drawQueue(view) {
  const runs = view.shown.filter((run) => run.queue.from.length);
  const nothing = runs.length ? "" : view.shown.length ? "No job was submitted." : "No policy is shown.";
  const lines = runs.map((run) => curveLine(view, run, run.queue, 1, (mean) => counted(mean, "job")));
  TABLES.set("queue", () => curveTable(view, runs.map((run) => [run.summary.policy, run.queue, run.end, 1]), "jobs"));
  draw("queue", overTime(view, { title: "jobs waiting" }, lines), nothing);
}

/** How many jobs have at most so much of something. */
function drawRanks(view, id, key, scale, least, title, written, ticks, column) {
  const runs = view.shown.filter((run) => run[key].count > 0);
  const nothing = runs.length ? "" : view.shown.length ? "No job ran." : "No policy is shown.";
  const lines = runs.map((run) => {
    const { values, ranks, count } = run[key], y = Array.from(ranks, (rank) => 100 * rank / count);
    return { name: run.summary.policy, colour: tint(run.place), dash: dash(run.place), width: 2, y,
      x: Array.from(values, (value) => Math.max(least, value / scale)),
      said: (place) => `${y[place].toFixed(1)} % up to ${written(values[place] / scale)}` };
  });
  TABLES.set(id, () => [["policy", column, "jobs_percent"], runs.flatMap((run) =>
    Array.from(run[key].values, (value, i) => [run.summary.policy, value / scale, 100 * run[key].ranks[i] / run[key].count]))]);
  draw(id, { x: { title, log: true, ticks }, y: { title: "jobs (%)", range: [0, 102] }, lines, hover: "nearest", zoom: "x", about: byId("case").value }, nothing);
}

function drawWaits(view) {
  const ticks = [[1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [6 * 3600, "6 h"], [86400, "1 d"], [10 * 86400, "10 d"], [100 * 86400, "100 d"]];
  const few = ticks.filter((_, place) => [0, 2, 4, 6, 7, 8].includes(place));
  const shown = ([from, until], pixels) => {
    const known = (pixels < 400 ? few : ticks).filter(([at]) => at >= from && at <= until);
    const unit = clockFor(1000 * until)[0] / 1000;
    return known.length > 1 ? known : logTicks([from / unit, until / unit], fewIn(pixels)).map(([at]) => [at * unit, time(at * unit)]);
  };
  drawRanks(view, "waits", "waits", 1000, 1, "wait", time, shown, "wait_s");
}

function drawSlowdowns(view) {
  drawRanks(view, "slowdowns", "slowdowns", 10000, 1, "bounded slowdown", (value) => value.toFixed(2), undefined, "bounded_slowdown");
}

function drawEnergy(view) {
  const runs = [...view.shown].reverse();
  const allowed = (run) => run.summary.budget_used ? run.summary.energy_j / run.summary.budget_used : null;
  const isLimited = runs.some((run) => allowed(run) !== null);
  byId("energy-about").textContent = isLimited
    ? "Drawn over the makespan. The mark is what the budget allowed in that time."
    : "Drawn over the makespan.";
  const [size, unit] = unitFor(Math.max(0, ...runs.map((run) => Math.max(run.summary.energy_j, allowed(run) ?? 0))), "J");
  // The number stands beside the name: on a bar it would be hard to read in some colours.
  const names = runs.map((run) => `${run.summary.policy}\n${scaled(run.summary.energy_j, "J")}`);
  const bars = runs.map((run) => ({ size: run.summary.energy_j / size, colour: tint(run.place), mark: allowed(run) && allowed(run) / size }));
  const hover = (x, y) => {
    const run = runs[Math.round(y)], words = run && `${run.summary.policy}: ${scaled(run.summary.energy_j, "J")}`;
    return run && allowed(run) !== null ? `${words}\nthe budget allowed ${scaled(allowed(run), "J")}` : words;
  };
  TABLES.set("energy", () => [["policy", "energy_j", "budget_allowed_j"], view.shown.map((run) => [run.summary.policy, run.summary.energy_j, allowed(run)])]);
  byId("energy").style.height = `${80 + 44 * runs.length}px`;
  draw("energy", { x: { title: `energy (${unit})` }, y: { names }, bars, lying: true, hover }, runs.length ? "" : "No policy is shown.");
}
