// The page of one job: what it is, its power over time, and each decision about it with its reason.

let jobShown = null;

/** The power that a job was allotted, by its history: times and watts. */
function allotted(lines) {
  const points = [];
  let power = 0;
  for (const { wall_s: at, what } of lines) {
    if (what.started || what.changed) points.push([at, power = (what.started ?? what.changed).allotment.power_w]);
    if (what.suspended || what.ended || what.withdrawn) points.push([at, 0]);
    if (what.resumed) points.push([at, power]);
  }
  return points;
}

function drawJob(job, lines, plan) {
  const now = secondsNow(), points = allotted(lines);
  const section = byId("job-power-section");
  const isAhead = !isOver(job) && plan?.start_s && plan.end_s > now;
  section.hidden = !points.length && !isAhead;
  if (section.hidden) return;
  const end = isOver(job) ? (job.ended_s ?? now) : isAhead ? plan.end_s : now;
  const begin = points.length ? points[0][0] : now, margin = Math.max(5, (end - begin) * 0.03);
  const [from, until] = [begin - margin, end + margin];
  const past = steps(points, from, isOver(job) ? until : Math.min(now, until));
  const ahead = !isAhead ? { x: [], y: [] } : steps([[Math.max(now, plan.start_s), isRunning(job) ? job.power_w : plan.power_w ?? job.needs_w ?? 0], [plan.end_s, 0]], now - 1, until);
  const most = Math.max(1, ...past.y, ...ahead.y), [size, unit] = unitFor(most, "W");
  const curves = [
    powerLine(past, size, { name: "allotted", colour: tint(0), width: 2 }, 0.15),
    powerLine(ahead, size, { name: "forecast", colour: tint(0), width: 2, dash: "dot" }),
  ];
  const changes = lines.filter(({ what }) => what.changed).length;
  const peak = past.y.length ? `It was allotted at most ${watts(Math.max(...past.y))}; its allotment was changed ${counted(changes, "time")}.` : "It has not run yet.";
  setText("job-words", `${peak}${isAhead ? ` Dots: the forecast, until ${clockTime(plan.end_s)} at the latest.` : ""}`);
  draw("job-chart", powerChart(curves, from, until, [most / size, unit], isOver(job) ? until : now, job.job));
}

function jobFacts(job, share) {
  const facts = [
    ["State", stateWords(job.state)],
    ["Nodes", job.on?.length ? `${job.nodes}: ${rangeWords(job.on)}` : `${job.nodes}`],
    ["Time limit", spanWords(job.time_s)],
    ["Submitted", clockTime(job.submitted_s, true)],
    ["Started", job.started_s === undefined ? "–" : clockTime(job.started_s, true)],
    ["Ended", job.ended_s === undefined ? "–" : clockTime(job.ended_s, true)],
  ];
  if (isRunning(job)) facts.push(["Power", drawWords(job, share)], ["Cap of a node", capWords(share)], ["Speed", job.speed === undefined ? "–" : speedWords(job.speed)]);
  if (job.needs_w !== undefined) facts.push(["Power as requested", watts(job.needs_w)]);
  if (job.energy_j !== undefined) facts.push(["Predicted energy", scaled(job.energy_j, "J")]);
  if (job.command) facts.push(["Command", job.command.join(" ")], ["Folder", job.folder], ["Output", job.output]);
  if (job.wish?.account) facts.push(["Account", job.wish.account]);
  facts.push(["User", job.user_name ? `${job.user_name} (${job.user})` : String(job.user)]);
  return facts;
}

/** The state of a job in a sentence. */
function jobWords(job, plan, status) {
  if (isOver(job)) return `The job is over: ${[stateWords(job.state), job.reason, job.end && endWords(job.end)].filter(Boolean).join(", ")}.`;
  if (isRunning(job)) {
    const { ran } = progressOf(job, plan);
    return `The job has run for ${spanWords(ran)}${plan?.end_s ? ` and ends by ${clockTime(plan.end_s)} at the latest` : ""}${job.reason ? `; ${stateWords(job.state)}: ${job.reason}` : ""}.`;
  }
  const start = job.state === "held" || !plan || plan.start_s === null ? "" : `; ${startWords(plan)}`;
  return `The job ${whyItWaits(job, plan, status)}${start}.`.replace("The job held", "The job is held");
}

function showFacts(facts) {
  const place = byId("job-facts"), key = JSON.stringify(facts);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  place.replaceChildren(...facts.map(([name, text]) => element("div", { className: "card" }, element("dt", { textContent: name }), element("dd", { textContent: text }))));
}

function showArray(number, elements) {
  setText("job-title", `Array ${number}`);
  setText("job-why", `${counted(elements.length, "job")}.`);
  showFacts([]);
  byId("job-elements").hidden = false;
  byId("job-power-section").hidden = byId("job-decisions-section").hidden = true;
  byId("job-buttons").replaceChildren();
  keepRows(byId("job-elements").querySelector("tbody"), elements, (job) => job.job, () => emptyRow(["", "reason"]), (row, job) => {
    fillName(row.children[0], job);
    fillCell(row.children[1], stateWords(job.state));
  });
}

/** Shows a job as it is now. */
async function showJob(number, known) {
  const [job, lines] = await Promise.all([ask(`jobs/${number}`), ask(`history?job=${number}&limit=10000`)]);
  if (jobShown !== number) return;
  if (job.elements) { showArray(number, job.elements); return; }
  const plan = (known.forecast?.jobs ?? []).find((line) => line.job === job.job), share = shares(known.nodes).get(job.job);
  byId("job-elements").hidden = true;
  byId("job-decisions-section").hidden = false;
  setText("job-title", `Job ${jobNumber(job)}${job.name ? `: ${job.name}` : ""}`);
  setText("job-why", jobWords(job, plan, known.status));
  showFacts(jobFacts(job, share));
  fillButtons(byId("job-buttons"), job);
  keepRows(byId("job-decisions").tBodies[0], lines, ({ line }) => line, () => emptyRow(["", "reason"]), (row, line) => {
    fillCell(row.children[0], clockTime(line.wall_s, true));
    fillCell(row.children[1], eventWords(line));
  });
  drawJob(job, lines, plan);
}

/** Empties the page of a job before another one is shown. */
function clearJob(number) {
  jobShown = number;
  setText("job-title", `Job ${number}`);
  setText("job-why", "…");
  showFacts([]);
  byId("job-buttons").replaceChildren();
  delete byId("job-buttons").dataset.changes;
  byId("job-decisions").tBodies[0].replaceChildren();
  byId("job-answer").textContent = "";
  byId("job-power-section").hidden = byId("job-elements").hidden = true;
}
