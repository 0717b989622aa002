// The jobs that run and those that wait: two tables, and the buttons that hold, release and cancel.

/** How many rows a table has before the reader asks for more. */
const PAGE_OF_ROWS = 200;
const shownRows = { running: PAGE_OF_ROWS, queue: PAGE_OF_ROWS };

const CHANGES_OF_JOBS = {
  hold: ["Hold", (job) => `Job ${job} is held.`],
  release: ["Release", (job) => `Job ${job} is released.`],
  cancel: ["Cancel", (job) => `Job ${job} is cancelled.`],
};

/** Which changes make sense for a job. */
function changesFor(job) {
  if (isOver(job) || job.state === "ending" || !mayChangeJobsOf(job.user)) return [];
  if (isRunning(job)) return ["cancel"];
  return [job.state === "held" ? "release" : "hold", "cancel"];
}

function fillButtons(place, job, names = changesFor(job)) {
  const key = names.join();
  if (place.dataset.changes === key) return;
  place.dataset.changes = key;
  place.replaceChildren(...names.map((name) => {
    const button = element("button", { type: "button", textContent: CHANGES_OF_JOBS[name][0] });
    button.setAttribute("aria-label", `${CHANGES_OF_JOBS[name][0]} job ${jobNumber(job)}`);
    Object.assign(button.dataset, { change: name, job: job.job, user: job.user });
    return button;
  }));
}

/** One listener for all buttons in a place. */
function watchButtons(place, answer, changed) {
  place.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-change]");
    if (!button) return;
    const { change: name, job, user } = button.dataset;
    await doing(answer, button, async () => {
      await needToken();
      // Nobody is asked whether they are sure of what they may not do.
      if (!mayChangeJobsOf(Number(user))) throw new Refused(403, `your token may not change job ${job}`);
      if (name === "cancel" && !await areYouSure(`Cancel job ${job}?`, "A job that runs is asked to end, and what it has done may be lost.", `Cancel job ${job}`)) throw new Withdrawn();
      const [{ asked } = {}] = await change(`jobs/${job}/${name}`, "POST");
      changed();
      return asked ? `Job ${job} is asked to end.` : CHANGES_OF_JOBS[name][1](job);
    });
  });
}

/** The heading of a job's row: a link to its page, whose it is and what it is called. */
function fillName(cell, job) {
  const text = jobNumber(job);
  if (!cell.firstElementChild) cell.append(element("a", { href: `#/jobs/${job.job}`, textContent: text }), " ", element("small"));
  fillCell(cell.lastElementChild, [job.name === undefined || isOwnerTold(job) ? ownerWords(job) : null, job.name].filter(Boolean).join(" · "));
}

/** The caps that a job has on its nodes, and what it draws there as far as meters know. */
function shares(nodes) {
  const byJob = new Map();
  for (const { job, cap_w: cap, measured } of nodes) {
    if (job === null) continue;
    const share = byJob.get(job) ?? { least: Infinity, most: 0, drawn: 0, isEmulated: false, isWhole: true };
    if (cap !== null) { share.least = Math.min(share.least, cap); share.most = Math.max(share.most, cap); }
    if (measured) { share.drawn += measured.power_w; share.isEmulated ||= measured.is_emulated; } else share.isWhole = false;
    byJob.set(job, share);
  }
  return byJob;
}

const capWords = (share) => (!share || !share.most ? "–" : share.least === share.most ? watts(share.most) : `${watts(share.least)} to ${watts(share.most)}`);

/** What a job draws: by meters if all of its nodes have one, else as predicted. */
function drawWords(job, share) {
  const predicted = job.power_w === undefined ? "–" : watts(job.power_w);
  if (!share?.isWhole) return `${predicted} predicted`;
  return `${watts(share.drawn)} ${share.isEmulated ? "emulated" : "measured"}, ${predicted} allotted`;
}

/** How far a job is, by the time that it takes at most. */
function progressOf(job, plan) {
  const begun = job.started_s, ran = begun === undefined ? 0 : secondsNow() - begun;
  const most = plan?.end_s && begun !== undefined ? plan.end_s - begun : job.time_s;
  return { ran: Math.max(0, ran), most, share: most > 0 ? Math.min(1, Math.max(0, ran / most)) : 0 };
}

function fillRunning(row, job, { plans, byJob }) {
  const [name, progress, power, cap, nodes, speed, end, buttons] = row.children;
  const plan = plans.get(job.job), share = byJob.get(job.job), { ran, most, share: done } = progressOf(job, plan);
  fillName(name, job);
  if (!progress.firstElementChild) progress.append(element("progress", { max: 1, ariaLabel: `Progress of job ${jobNumber(job)}` }), element("span"));
  progress.firstElementChild.value = done;
  const state = job.state === "running" ? "" : ` (${stateWords(job.state)}: ${job.reason})`;
  fillCell(progress.lastElementChild, `${spanWords(ran)} of ${spanWords(most)}${state}`);
  fillCell(power, drawWords(job, share));
  fillCell(cap, capWords(share));
  fillCell(nodes, `${job.nodes}`);
  nodes.title = `nodes ${rangeWords(job.on ?? [])}`;
  fillCell(speed, job.speed === undefined ? "–" : speedWords(job.speed));
  fillCell(end, plan?.end_s ? clockTime(plan.end_s) : "–");
  if (!buttons.firstElementChild) buttons.append(element("div", { className: "buttons" }));
  fillButtons(buttons.firstElementChild, job);
}

function fillWaiting(row, job, { plans, status }) {
  const [name, why, start, nodes, limit, submitted, buttons] = row.children;
  const plan = plans.get(job.job);
  fillName(name, job);
  if (!why.firstElementChild) why.append(element("span"), " ", element("small", { className: "narrow-only" }));
  fillCell(why.firstElementChild, whyItWaits(job, plan, status));
  const starts = job.state === "held" ? null : startWords(plan);
  fillCell(why.lastElementChild, starts ?? "");
  fillCell(start, job.state === "held" || !plan?.start_s ? "–" : plan.start_s <= secondsNow() ? "any moment" : clockTime(plan.start_s));
  fillCell(nodes, `${job.nodes}`);
  fillCell(limit, spanWords(job.time_s));
  fillCell(submitted, clockTime(job.submitted_s));
  if (!buttons.firstElementChild) buttons.append(element("div", { className: "buttons" }));
  fillButtons(buttons.firstElementChild, job);
}

const WIDE = "wide-only";
const RUNNING_ROW = ["", "", "", WIDE, WIDE, WIDE, WIDE, ""], WAITING_ROW = ["", "reason", WIDE, WIDE, WIDE, WIDE, ""];

/** Fills one of the tables with its first rows, and says how many there are. */
function showTable(id, jobs, all, what, row, fill) {
  const some = jobs.slice(0, shownRows[id]);
  keepRows(byId(id).tBodies[0], some, (job) => job.job, () => emptyRow(row), fill);
  byId(id).closest(".scroll").hidden = !some.length;
  byId(`${id}-more`).hidden = jobs.length <= some.length;
  const found = jobs.length === all ? counted(all, what) : `${jobs.length.toLocaleString("en")} of ${counted(all, what)} match`;
  setText(`${id}-note`, !all ? `No ${what}.` : jobs.length > some.length ? `${found}; the first ${some.length} are shown.` : `${found}.`);
}

function showJobs(known) {
  const plans = new Map((known.forecast?.jobs ?? []).map((plan) => [plan.job, plan]));
  const context = { plans, byJob: shares(known.nodes), status: known.status };
  const running = known.jobs.filter(isRunning), waiting = known.jobs.filter((job) => !isRunning(job));
  showTable("running", running, running.length, "running job", RUNNING_ROW, (row, job) => fillRunning(row, job, context));
  // Who starts first stands first; whoever is not expected to start comes last.
  const order = (job) => plans.get(job.job)?.start_s ?? Infinity;
  waiting.sort((a, b) => (order(a) === order(b) ? a.job - b.job : order(a) - order(b)));
  const wanted = byId("queue-filter").value.toLowerCase();
  const matches = (job) => `${jobNumber(job)} ${job.name ?? ""} ${job.user_name ?? ""} user ${job.user} ${job.state} ${job.reason ?? ""}`.toLowerCase().includes(wanted);
  const found = wanted.trim() ? waiting.filter(matches) : waiting;
  showTable("queue", found, waiting.length, "waiting job", WAITING_ROW, (row, job) => fillWaiting(row, job, context));
  setText("done-by", known.forecast && known.jobs.length ? clockTime(known.forecast.all_over_s) : "–");
}
