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

/** The band and the line of one run. */
function curveTraces(view, run, curve, scale, written) {
  const seen = within(curve, run.end, ...view.window), colour = tint(run.place);
  const x = seen.x.map((at) => at / view.clock[0]), by = (values) => values.map((value) => value * scale);
  const date = calendar ? (at) => `${dateOf(seen.x[at])}: ` : () => "";
  const edge = { x, mode: "lines", line: { width: 0, shape: "hv" }, hoverinfo: "skip" };
  return [
    { ...edge, y: by(seen.low) },
    { ...edge, y: by(seen.high), fill: "tonexty", fillcolor: faded(colour, 0.16) },
    { x, y: by(seen.mean), mode: "lines", name: plain(run.summary.policy),
      line: { color: colour, width: 1.6, shape: "hv", dash: dash(run.place) },
      customdata: seen.mean.map((mean, at) => date(at) + written(mean)), hovertemplate: "%{customdata}" },
  ];
}

function timeAxis(view) {
  const [size, name] = view.clock, range = view.window.map((at) => at / size);
  if (!calendar) return { title: `time (${name})`, range, hoverformat: ".3~f" };
  const marks = dateMarks(view.window, isNarrow() ? 4 : 9);
  return { title: `time in ${calendar.timeZone}`, range, tickvals: marks.map(([at]) => at / size), ticktext: marks.map(([, text]) => text),
    hoverformat: ".3~f" };
}

function drawPower(view) {
  const runs = view.shown.filter((run) => run.power.from.length);
  const unkept = view.shown.some((run) => run.bars.job.length) ? "The power over time was not kept." : "No job ran.";
  const nothing = runs.length ? "" : view.shown.length ? unkept : "No policy is shown.";
  const limits = view.shown.filter((run) => run.limit.from.length);
  const most = Math.max(0, ...runs.map((run) => run.summary.peak_power_w), ...limits.map((run) => Math.max(...run.limit.high) / 1000));
  const [size, unit] = unitFor(most, "W");
  const watts = (milliwatts) => scaled(milliwatts / 1000, "W");
  const traces = runs.flatMap((run) => curveTraces(view, run, run.power, 1 / 1000 / size, watts));
  if (limits.length) {
    const [run] = limits, seen = within(run.limit, Math.max(...limits.map((run) => run.end)), ...view.window);
    traces.push({ x: seen.x.map((at) => at / view.clock[0]), y: seen.mean.map((limit) => limit > 0 ? limit / 1000 / size : null),
      mode: "lines", name: "budget", line: { color: ink("ink"), width: 1.5, dash: "dash", shape: "hv" },
      customdata: seen.mean.map(watts), hovertemplate: "%{customdata}" });
  }
  return draw("power", traces, { xaxis: timeAxis(view), yaxis: { title: `power (${unit})`, rangemode: "tozero", fixedrange: true } }, nothing);
}

function drawBusy(view) {
  const nothing = view.shown.length ? "" : "No policy is shown.";
  const traces = view.shown.flatMap((run) => {
    const nodes = run.summary.nodes;
    return curveTraces(view, run, run.busy, 100 / nodes, (mean) => `${(100 * mean / nodes).toFixed(1)} %`);
  });
  return draw("busy", traces, { xaxis: timeAxis(view), yaxis: { title: "nodes in use (%)", range: [0, 102], fixedrange: true } }, nothing);
}

/** How many jobs have at most so much of something. */
function drawRanks(view, id, key, scale, least, title, written, ticks) {
  const runs = view.shown.filter((run) => run[key].count > 0);
  const nothing = runs.length ? "" : view.shown.length ? "No job ran." : "No policy is shown.";
  const traces = runs.map((run) => {
    const { values, ranks, count } = run[key];
    const x = Array.from(values, (value) => Math.max(least, value / scale));
    return { x, y: Array.from(ranks, (rank) => 100 * rank / count), mode: "lines", name: plain(run.summary.policy),
      line: { color: tint(run.place), width: 2, shape: "hv", dash: dash(run.place) },
      customdata: Array.from(values, (value) => written(value / scale)),
      hovertemplate: "%{y:.1f} % up to %{customdata}" };
  });
  return draw(id, traces, { hovermode: "closest", xaxis: { title, type: "log", ...ticks },
    yaxis: { title: "jobs (%)", range: [0, 102], fixedrange: true } }, nothing);
}

function drawWaits(view) {
  const ticks = [[1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [6 * 3600, "6 h"], [86400, "1 d"], [10 * 86400, "10 d"], [100 * 86400, "100 d"]];
  const few = isNarrow() ? ticks.filter((_, i) => [0, 2, 4, 6, 7, 8].includes(i)) : ticks;
  return drawRanks(view, "waits", "waits", 1000, 1, "wait", time,
    { tickvals: few.map(([at]) => at), ticktext: few.map(([, text]) => text) });
}

function drawSlowdowns(view) {
  return drawRanks(view, "slowdowns", "slowdowns", 10000, 1, "bounded slowdown", (value) => value.toFixed(2), { dtick: 1 });
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
  const y = runs.map((run) => `${plain(run.summary.policy)}<br>${scaled(run.summary.energy_j, "J")}`);
  const traces = [{ type: "bar", orientation: "h", y, x: runs.map((run) => run.summary.energy_j / size),
    marker: { color: runs.map((run) => tint(run.place)) }, hoverinfo: "skip", width: 0.6 }];
  if (isLimited) {
    traces.push({ type: "scatter", mode: "markers", y, x: runs.map((run) => allowed(run) / size),
      marker: { symbol: "line-ns-open", size: 20, line: { width: 2, color: ink("ink") }, color: ink("ink") },
      customdata: runs.map((run) => scaled(allowed(run) ?? 0, "J")), hovertemplate: "the budget allowed %{customdata}<extra></extra>" });
  }
  byId("energy").style.height = `${80 + 44 * runs.length}px`;
  return draw("energy", traces, { hovermode: "closest", xaxis: { title: `energy (${unit})`, rangemode: "tozero", fixedrange: true },
    yaxis: { fixedrange: true, ticks: "", type: "category" }, dragmode: false }, runs.length ? "" : "No policy is shown.");
}
