// Power now against the budget, and the last and the coming hours in one chart.

/** What the machine draws as far as anybody knows, and how it is known. */
function powerNow(status) {
  const { base_w: base, held_w: held, measured } = status.power, all = status.nodes[0];
  const ledger = sum(base, held);
  if (measured && measured.nodes >= all) {
    const how = measured.emulated ? "Emulated" : "Measured";
    const why = measured.emulated ? "an emulator stands in for meters" : "by the meters of the nodes";
    return { power: measured.power_w, how, words: `${how} on all ${counted(all, "node")}, ${why}. The daemon counts ${watts(ledger)} for the jobs and the idle machine.` };
  }
  const some = measured ? ` Meters show ${watts(measured.power_w)} on ${measured.nodes} of ${counted(all, "node")}.` : " Nothing is measured here.";
  return { power: ledger, how: "Counted", words: `Counted by the daemon: ${watts(held)} held by jobs, and ${watts(base)} that the machine draws without them.${some}` };
}

/** Whether the power was over the budget when it was last looked at. */
let wasOver = null;

function showPower(status) {
  const { limit_w: limit, free_w: free, notice } = status.power, { power, how, words } = powerNow(status);
  const exceeds = limit !== null && power > limit;
  const box = byId("power-section");
  box.dataset.verdict = limit === null ? "unlimited" : exceeds ? "over" : "within";
  setText("drawn", watts(power));
  setText("allowed", limit === null ? "no budget" : `of ${watts(limit)}`);
  byId("bar").firstElementChild.style.width = limit ? `${Math.min(100, 100 * power / limit)}%` : "0";
  const share = limit ? ` (${(100 * power / limit).toFixed(0)} %)` : "";
  const verdict = limit === null ? "There is no limit." : exceeds ? `▲ Over the budget by ${watts(power - limit)}${share}` : `Within the budget${share}`;
  setText("verdict", verdict);
  setText("source", words);
  setText("headroom", free === null ? "no limit" : watts(free));
  setText("running-count", status.running.toLocaleString("en"));
  setText("waiting-count", status.waiting.toLocaleString("en"));
  setText("idle-count", `${status.nodes[1]} of ${status.nodes[0]}`);
  document.title = `${watts(power)}${limit === null ? "" : ` of ${watts(limit)}`} – Busbar`;
  setText("machine", status.cluster || status.machine);
  // Figures that change every second would talk without end; only the crossing is worth a word.
  if (wasOver !== null && wasOver !== exceeds) {
    setText("crossing", exceeds ? `The power is over the budget: ${watts(power)} of ${watts(limit)}.` : "The power is within the budget again.");
  }
  wasOver = exceeds;
  showNotices([...(notice ? [notice] : []), ...status.notices.filter((text) => text !== notice)]);
  return how;
}

function showNotices(notices) {
  const place = byId("notices"), key = notices.join("\n");
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  place.hidden = !notices.length;
  place.replaceChildren(...notices.map((text) => element("p", { className: "warning", textContent: `Notice: ${text}` })));
}

// A time is drawn as the reader's clock shows it.
setCalendar([0, Intl.DateTimeFormat().resolvedOptions().timeZone]);

/** Round times beside an axis of milliseconds; the first says of which day. */
function clockTicks(range, pixels) {
  const [first, ...others] = dateMarks(range, fewIn(pixels));
  if (!first) return [];
  const [at, text] = first;
  return [[at, text.includes(":") ? `${text}\n${dateWritten(new Date(wall(at)), "day")}` : text], ...others];
}

/** The most points of a curve in a chart of hours. */
const MOST_POINTS = 700;

/** At most so many samples: the highest power and the lowest limit of several in a row. */
function thinned(samples) {
  const width = Math.ceil(samples.length / MOST_POINTS);
  if (width <= 1) return samples;
  const kept = [];
  const over = (part, key, better) => part.reduce((best, { [key]: value }) => (value === null ? best : best === null ? value : better(best, value)), null);
  for (let at = 0; at < samples.length; at += width) {
    const part = samples.slice(at, at + width);
    kept.push({ at_s: part[0].at_s, limit_w: over(part, "limit_w", Math.min), counted_w: over(part, "counted_w", Math.max), measured_w: over(part, "measured_w", Math.max) });
  }
  return kept;
}

/** The power of a forecast over time, and its limits, as times and watts. */
const powersOf = (forecast) => (forecast?.power ?? []).map(({ at_s: at, power_w: power }) => [at, power]);
const limitsOf = (forecast) => (forecast?.limits ?? []).map(({ at_s: at, limit_w: limit }) => [at, limit]);

/** A curve that holds each value until the next, between two times. */
function steps(points, from, until) {
  const x = [], y = [];
  let before = null;
  for (const [at, value] of points) {
    if (at <= from) { before = value; continue; }
    if (at >= until) break;
    if (!x.length && before !== null) { x.push(from); y.push(before); }
    x.push(at);
    y.push(value);
    before = value;
  }
  if (!x.length && before !== null) { x.push(from); y.push(before); }
  if (x.length) { x.push(until); y.push(y.at(-1)); }
  return { x, y };
}

/** One line of a chart of power over time, filled down to zero by a share. */
function powerLine({ x, y }, size, style, share) {
  const shown = y.map((value) => (value === null ? null : value / size));
  return { x: x.map((seconds) => 1000 * seconds), y: shown, ...style, said: (place) => watts(y[place]),
    band: share && { low: shown.map(() => 0), high: shown, share } };
}

/** A chart of power over time, with a line where the present is. A part of it stays chosen while it is about the same. */
function powerChart(lines, from, until, [top, unit], now, about) {
  return { x: { range: [1000 * from, 1000 * until], ticks: clockTicks, written: dateOf }, y: { title: `power (${unit})`, range: [0, 1.08 * top] },
    lines, now: now > from && now < until ? 1000 * now : undefined, hover: "all", zoom: "x", about };
}

/** What the lines of a chart mean: name, colour and dash of each. */
function showKey(id, lines) {
  byId(id).replaceChildren(...lines.map(([name, colour, dashes]) => {
    const line = element("i", { className: "line" });
    line.style.setProperty("--tint", `var(--${colour})`);
    line.style.setProperty("--dash", dashes);
    return element("span", {}, line, name);
  }));
}

function drawHours({ samples, forecast, status }) {
  const hours = Number(byId("hours").value), now = secondsNow();
  const first = samples.length ? samples[0].at_s : now;
  const from = Math.min(now - 300, Math.max(now - hours * 3600, first));
  const over = Math.max(forecast?.all_over_s ?? 0, ...(forecast?.limits ?? []).map(({ at_s: at }) => at));
  const until = Math.max(now + 300, Math.min(now + hours * 3600, over + (over - now) * 0.05));
  const past = thinned(samples.filter(({ at_s: at }) => at >= from - 20));
  const hasMeters = past.some(({ measured_w: measured }) => measured !== null);
  const points = (key) => past.flatMap((sample, i) => {
    const at = sample.at_s, next = past[i + 1]?.at_s ?? now, step = past.length > 1 ? (past.at(-1).at_s - past[0].at_s) / (past.length - 1) : 10;
    // A daemon that was not there has no power to show.
    return next - at > Math.max(60, 3 * step) ? [[at, sample[key]], [at + 10, null]] : [[at, sample[key]]];
  });
  const plan = steps(powersOf(forecast), now, until), limits = steps(limitsOf(forecast), now, until);
  const most = Math.max(1, ...past.flatMap(({ counted_w: counted, measured_w: measured, limit_w: limit }) => [counted, measured ?? 0, limit ?? 0]), ...plan.y, ...limits.y.map((limit) => limit ?? 0));
  const [size, unit] = unitFor(most, "W");
  const main = hasMeters ? "measured_w" : "counted_w", name = hasMeters ? (status.power.measured?.emulated ? "emulated" : "measured") : "counted";
  const drawn = steps(points(main), from, now);
  const lines = [
    powerLine(drawn, size, { name, colour: tint(0), width: 2 }, 0.15),
    powerLine(plan, size, { name: "forecast", colour: tint(0), width: 2, dash: "dot" }, 0.06),
    powerLine(joined(steps(points("limit_w"), from, now), limits), size, { name: "budget", colour: ink("ink"), width: 1.6, dash: "dash" }),
  ];
  const key = [[name, "series-0", "solid"], ["forecast", "series-0", "dotted"], ["budget", "ink", "dashed"]];
  if (hasMeters) {
    lines.push(powerLine(steps(points("counted_w"), from, now), size, { name: "counted for jobs", colour: tint(7), width: 1.3, dash: "dashdot" }));
    key.push(["counted for jobs", "series-7", "dashed"]);
  }
  showKey("hours-key", key);
  setText("hours-words", hoursWords({ drawn, plan, past, main, name, from, now, until, forecast }));
  draw("hours-chart", powerChart(lines, from, until, [most / size, unit], now, hours));
}

const joined = (a, b) => ({ x: [...a.x, ...b.x], y: [...a.y, ...b.y] });

/** What the chart shows, for those who do not see it, and in short for those who do. */
function hoursWords({ drawn, plan, past, main, name, from, now, forecast }) {
  const known = drawn.y.filter((value) => value !== null);
  const words = [];
  if (known.length) {
    const most = Math.max(...known), at = drawn.x[drawn.y.indexOf(most)];
    const above = past.filter((sample) => sample.limit_w !== null && sample[main] > sample.limit_w).length;
    const least = Math.min(...known), since = `Since ${clockTime(Math.max(from, drawn.x[0]))} the ${name} power was`;
    words.push(least === most ? `${since} ${watts(most)}.` : `${since} between ${watts(least)} and ${watts(most)}, which it first had at ${clockTime(at)}.`);
    words.push(above ? `It was over the budget in ${counted(above, "step")} of the curve.` : "It was never over the budget.");
  }
  if (forecast && plan.y.length) {
    const most = Math.max(...plan.y), at = plan.x[plan.y.indexOf(most)];
    words.push(`The forecast reaches ${watts(most)} ${at <= now + 1 ? "now" : `at ${clockTime(at)}`}; ${forecast.jobs.length ? `all present jobs are over by ${clockTime(forecast.all_over_s)}, if each takes its whole time limit.` : "no job is known."}`);
  }
  return words.join(" ");
}
