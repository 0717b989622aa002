// The past: jobs that are over, the energy of users and accounts, and the power of weeks and months.

/** Energy as people pay for it. */
const energyWords = (joules) => (joules < 3.6e5 ? scaled(joules, "J") : scaled(joules / 3600, "Wh"));

const DAY = 86400;

/** When the reader's day began, so many days ago. */
function dayBegan(daysAgo) {
  const at = new Date(secondsNow() * 1000);
  at.setHours(0, 0, 0, 0);
  at.setDate(at.getDate() - daysAgo);
  return Math.floor(at.getTime() / 1000);
}

// Finished jobs, page by page.

const FINISHED_PAGE = 50;

/** How often the daemon is asked for one page; an answer may be empty although there are more jobs further back. */
const MOST_ASKED = 10;

/** Where the pages begin that were turned already; the last one is shown. */
let finishedPages = [null];

const finishedShown = { jobs: [], next: null, isCut: false };

function finishedQuestion() {
  const query = new URLSearchParams({ all: "true" }), days = byId("finished-days").value;
  if (days) query.set("since", dayBegan(Number(days)));
  for (const name of ["state", "user", "account"]) {
    const value = byId(`finished-${name}`).value.trim();
    if (value) query.set(name, value);
  }
  return query;
}

/** Reads the page that is shown. */
async function readFinished() {
  const query = finishedQuestion(), pages = finishedPages, jobs = [];
  let next = pages.at(-1), asked = 0;
  do {
    query.set("limit", FINISHED_PAGE - jobs.length);
    if (next !== null) query.set("before", next);
    const part = await ask(`history/jobs?${query}`);
    jobs.push(...part.jobs);
    next = part.next ?? null;
    asked += 1;
  } while (next !== null && jobs.length < FINISHED_PAGE && asked < MOST_ASKED);
  // Somebody may have turned the page meanwhile.
  if (pages === finishedPages) Object.assign(finishedShown, { jobs, next, isCut: next !== null && jobs.length < FINISHED_PAGE });
}

function endedWords(job) {
  const state = stateWords(job.state);
  return job.reason && job.reason !== state ? `${state}: ${job.reason}` : state;
}

const FINISHED_ROW = ["", "reason", "", WIDE, WIDE, "", WIDE, WIDE];

function fillFinished(row, job) {
  const [name, state, ended, elapsed, nodes, energy, account, submitted] = row.children;
  fillName(name, job);
  fillCell(state, endedWords(job));
  fillCell(ended, clockTime(job.ended_s));
  fillCell(elapsed, job.started_s === undefined ? "did not run" : spanWords(job.elapsed_s));
  fillCell(nodes, `${job.nodes}`);
  nodes.title = job.on ? `nodes ${rangeWords(job.on)}` : "";
  const measured = job.measured_energy_j;
  fillCell(energy, energyWords(measured ?? job.energy_j));
  energy.title = measured === undefined ? "predicted" : `${job.emulated ? "emulated" : "measured"}; ${energyWords(job.energy_j)} predicted`;
  fillCell(account, job.account ?? "–");
  fillCell(submitted, clockTime(job.submitted_s));
}

function showFinished() {
  const { jobs, next, isCut } = finishedShown, page = finishedPages.length;
  keepRows(byId("finished").tBodies[0], jobs, (job) => job.job, () => emptyRow(FINISHED_ROW), fillFinished);
  byId("finished").closest(".scroll").hidden = !jobs.length;
  byId("finished-newer").disabled = page === 1;
  byId("finished-older").disabled = next === null;
  byId("finished-pages").hidden = page === 1 && next === null;
  const back = isCut ? ` Looked back to ${clockTime(Number(next.split(".")[0]) / 1000)}; Older looks further.` : "";
  const some = jobs.length ? `Page ${page}: ${counted(jobs.length, "job")}, the latest first. Energy is predicted unless a meter measured it.` : page === 1 && !isCut ? "No finished job matches." : "No job on this page.";
  setText("finished-note", some + back);
}

/** Turns the page, or begins anew, and shows what there is. */
async function turnFinished(pages) {
  finishedPages = pages;
  await doing(byId("finished-answer"), null, async () => { await readFinished(); showFinished(); });
}

function watchFinished() {
  const form = byId("finished-form");
  form.addEventListener("submit", (event) => { event.preventDefault(); turnFinished([null]); });
  form.addEventListener("change", () => turnFinished([null]));
  byId("finished-older").addEventListener("click", () => turnFinished([...finishedPages, finishedShown.next]));
  byId("finished-newer").addEventListener("click", () => turnFinished(finishedPages.slice(0, -1)));
}

// Energy by user or account.

let usageShown = null;

async function readUsage() {
  const days = Number(byId("usage-days").value), by = byId("usage-by").value;
  const usage = await ask(`history/usage?by=${by}&since=${Math.floor(secondsNow()) - (days - 1) * DAY}`);
  usageShown = { ...usage, by };
}

function fillUsage(row, { name, sum, whole }) {
  const [heading, jobs, time, energy, share] = row.children;
  fillCell(heading, name);
  fillCell(jobs, sum.jobs.toLocaleString("en"));
  fillCell(time, `${(sum.node_s / 3600).toFixed(1)} h`);
  fillCell(energy, energyWords(sum.energy_j));
  energy.title = sum.measured_jobs ? `${counted(sum.measured_jobs, "job")} measured: ${energyWords(sum.measured_energy_j)}` : "predicted";
  if (!share.firstElementChild) share.append(element("progress", { max: 1, ariaLabel: `Share of ${name}` }), element("span"));
  const part = whole ? sum.energy_j / whole : 0;
  share.firstElementChild.value = part;
  fillCell(share.lastElementChild, `${(100 * part).toFixed(1)} %`);
}

function showUsage() {
  if (!usageShown) return;
  const { sums, by, first_day: first, last_day: last } = usageShown;
  const whole = sums.reduce((sum, { energy_j: energy }) => sum + energy, 0);
  const name = (sum) => (by === "user" ? ownerWords(sum) : sum.account ?? "no account");
  const rows = sums.slice(0, FINISHED_PAGE).map((sum) => ({ sum, whole, name: name(sum) }));
  setText("usage-heading", by === "user" ? "User" : "Account");
  keepRows(byId("usage").tBodies[0], rows, (row) => row.name, () => emptyRow(["", "", WIDE, "", ""]), fillUsage);
  byId("usage").closest(".scroll").hidden = !rows.length;
  const jobs = sums.reduce((sum, one) => sum + one.jobs, 0);
  const more = sums.length > rows.length ? ` The first ${rows.length} of ${sums.length} are shown.` : "";
  setText("usage-note", sums.length ? `From ${first} to ${last} ${counted(jobs, "job")} ended, which took ${energyWords(whole)} as predicted. A job counts on the day it ended.${more}` : `From ${first} to ${last} no job ended.`);
}

// Power.

let pastShown = null;

async function readPast() {
  const days = Number(byId("past-days").value), now = Math.floor(secondsNow());
  pastShown = { ...await ask(`history/power?since=${now - days * DAY}&points=${MOST_POINTS}`), days };
}

/** The mean power of a stretch; nothing if its energy is not known. */
const meanOf = (energy, time) => (time > 0 ? energy / time : null);

function drawPast() {
  if (!pastShown) return;
  const { stretches, step_s: step, days } = pastShown, now = secondsNow(), hasMeters = stretches.some(({ measured_w: power }) => power !== null);
  const main = hasMeters ? "measured" : "counted", from = Math.max(now - days * DAY, Math.min(stretches[0]?.at_s ?? now, now - 60));
  const points = (value) => stretches.flatMap((stretch, i) => {
    const next = stretches[i + 1]?.at_s ?? now, at = Math.max(from, stretch.at_s), power = value(stretch);
    // A daemon that was not there has no power to show.
    return next - stretch.at_s > 1.5 * step ? [[at, power], [stretch.at_s + step, null]] : [[at, power]];
  });
  const highest = steps(points((stretch) => stretch[`${main}_w`]), from - 1, now);
  const mean = steps(points((stretch) => meanOf(stretch[`${main}_energy_j`], stretch[`${main}_s`])), from - 1, now);
  const limits = steps(points(({ limit_w: limit }) => limit), from - 1, now);
  const most = Math.max(1, ...[...highest.y, ...limits.y].map((power) => power ?? 0)), [size, unit] = unitFor(most, "W");
  const lines = [
    powerLine(mean, size, { name: "mean", colour: tint(0), width: 2 }, 0.15),
    powerLine(highest, size, { name: "highest", colour: tint(1), width: 1.2 }),
    powerLine(limits, size, { name: "budget", colour: ink("ink"), width: 1.6, dash: "dash" }),
  ];
  showKey("past-key", [["mean", "series-0", "solid"], ["highest", "series-1", "solid"], ["budget", "ink", "dashed"]]);
  setText("past-words", pastWords(pastShown, main, highest, from));
  draw("past-chart", powerChart(lines, from, now, [most / size, unit], now, days), stretches.length ? "" : "Nothing is known of this time yet.");
}

/** What the chart shows, in words. */
function pastWords({ stretches, step_s: step, ...totals }, main, highest, from) {
  if (!stretches.length) return "";
  const energy = totals[`${main}_energy_j`], known = totals[`${main}_s`], span = Math.max(1, secondsNow() - from);
  const most = highest.y.reduce((best, power, i) => (power !== null && (best === null || power > highest.y[best]) ? i : best), null);
  const words = [`Since ${clockTime(from)} the machine drew ${energyWords(energy)} as ${main}${known > 0 ? `, ${watts(energy / known)} on average` : ""}${most === null ? "" : `, and at most ${watts(highest.y[most])} at ${clockTime(highest.x[most])}`}.`];
  if (known < 0.99 * span) words.push(`The energy is known for ${Math.floor(100 * known / span)} % of that time: while the daemon ran.`);
  words.push(`A step of the curves is ${time(step)} long.`);
  return words.join(" ");
}

/** Asks again when the reader chooses something else. */
function watchPast() {
  watchFinished();
  byId("past-days").addEventListener("change", () => doing(byId("past-answer"), null, async () => { await readPast(); drawPast(); }));
  for (const id of ["usage-days", "usage-by"]) byId(id).addEventListener("change", () => doing(byId("usage-answer"), null, async () => { await readUsage(); showUsage(); }));
}
