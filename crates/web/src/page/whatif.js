// What if: the plan under another budget, another policy or with one more job, drawn over the present one.

/** What an assumed job asks for where nothing is written, as on the command line. */
const USUAL_JOB = { nodes: "1", time: "1h" };

/** What is assumed, as the daemon is asked; empty if nothing is. */
function assumptions() {
  const limit = byId("whatif-limit").value.trim(), policy = byId("whatif-policy").value.trim();
  const question = {};
  if (limit) question.budget = [{ in_s: Number(byId("whatif-from").value), limit }];
  if (policy) question.policy = policy;
  if (byId("whatif-nodes").value.trim() || byId("whatif-time").value.trim()) question.job = wish("whatif", "this job", USUAL_JOB);
  if (!Object.keys(question).length) throw new Refused(0, "assume at least one thing: a limit, a policy or a job");
  return question;
}

/** What differs between two plans. */
function difference(present, assumed) {
  const before = new Map(present.jobs.map((plan) => [plan.job, plan])), now = secondsNow();
  let sooner = 0, later = 0, never = 0, shift = 0, both = 0;
  for (const { job, start_s: start } of assumed.jobs) {
    const was = before.get(job)?.start_s;
    // Who runs already has started; the assumed job has no other plan.
    if (job === null || was === undefined || (was !== null && was <= now && start === was)) continue;
    if (start === null) { never += was === null ? 0 : 1; continue; }
    if (was === null) { sooner++; continue; }
    both++;
    shift += start - was;
    if (start < was) sooner++;
    if (start > was) later++;
  }
  return { sooner, later, never, mean: both ? shift / both : 0 };
}

const shiftWords = (seconds) => (Math.abs(seconds) < 1 ? "as before" : `${time(Math.abs(seconds))} ${seconds < 0 ? "sooner" : "later"}`);

function differenceWords(present, assumed) {
  const { sooner, later, never, mean } = difference(present, assumed);
  const parts = [[sooner, "sooner"], [later, "later"], [never, "not at all"]].filter(([count]) => count).map(([count, how]) => `${counted(count, "job")} would start ${how}`);
  const starts = parts.length ? `${parts.join(", ")}${sooner || later ? `; on average ${shiftWords(mean)}` : ""}.` : "Every job would start when it does now.";
  const extra = assumed.jobs.find(({ job }) => job === null);
  const one = !extra ? "" : extra.start_s === null ? ` The job would not start${extra.reason ? `: ${extra.reason}` : ""}.` : ` The job would ${extra.start_s <= secondsNow() + 1 ? "start at once" : `start at ${clockTime(extra.start_s)}`} and end by ${clockTime(extra.end_s)}.`;
  return `${starts}${one} The last job would end ${shiftWords(assumed.all_over_s - present.all_over_s)}.`;
}

function showDifference(present, assumed) {
  setText("whatif-words", `${differenceWords(present, assumed)} Assumed: ${assumed.assumptions.join("; ")}.`);
  const starts = ({ jobs }) => jobs.filter(({ job, start_s: start }) => job !== null && start !== null).length.toLocaleString("en");
  const rows = [
    ["Highest power", watts(present.peak_w), watts(assumed.peak_w)],
    ["All done by", clockTime(present.all_over_s), clockTime(assumed.all_over_s)],
    ["Jobs that start", starts(present), starts(assumed)],
  ];
  keepRows(byId("whatif-figures").tBodies[0], rows, ([name]) => name, () => emptyRow(["", "", ""]), (row, texts) => texts.forEach((text, i) => fillCell(row.children[i], text)));
}

/** The two plans of the last question, to be drawn again in other colours. */
let whatIf = null;

function drawWhatIf() {
  if (!whatIf) return;
  const { present, assumed, at } = whatIf;
  const ends = [present, assumed].flatMap(({ all_over_s: end, limits }) => [end, ...limits.map(({ at_s: from }) => from)]);
  // What lies days ahead would press the next hours into a line.
  const until = Math.min(at + 3 * 86400, Math.max(at + 300, ...ends) + 60);
  const from = at - (until - at) * 0.02;
  const curves = [present, assumed].map((plan) => [steps(powersOf(plan), at, until), steps(limitsOf(plan), at, until)]);
  const most = Math.max(1, ...curves.flat().flatMap(({ y }) => y.map((value) => value ?? 0)));
  const [size, unit] = unitFor(most, "W");
  const [[plan, budget], [otherPlan, otherBudget]] = curves;
  const lines = [
    powerLine(plan, size, { name: "present plan", colour: tint(0), width: 2 }, 0.12),
    powerLine(otherPlan, size, { name: "what if", colour: tint(1), width: 2.4, dash: "dot" }),
    powerLine(budget, size, { name: "budget", colour: ink("ink"), width: 1.6, dash: "dash" }),
  ];
  const key = [["present plan", "series-0", "solid"], ["what if", "series-1", "dotted"], ["budget", "ink", "dashed"]];
  if (JSON.stringify(budget) !== JSON.stringify(otherBudget)) {
    lines.push(powerLine(otherBudget, size, { name: "budget, what if", colour: tint(1), width: 1.6, dash: "dash" }));
    key.push(["budget, what if", "series-1", "dashed"]);
  }
  showKey("whatif-key", key);
  draw("whatif-chart", powerChart(lines, from, until, [most / size, unit], at, at));
}

async function tryOut() {
  const question = assumptions();
  // Both plans begin at nearly the same moment, so that they can be compared.
  const present = await ask("forecast", { method: "POST", body: {} }), assumed = await ask("forecast", { method: "POST", body: question });
  whatIf = { present, assumed, question, at: secondsNow() };
  byId("whatif-result").hidden = false;
  showDifference(present, assumed);
  offer(question);
  await drawWhatIf();
  return "Nothing was changed: this is only drawn.";
}

/** What can be applied of the assumptions, and how the rest is. */
function offer({ budget, policy, job }) {
  const [{ in_s: after, limit } = {}] = budget ?? [], isNow = after === 0;
  byId("whatif-apply").hidden = !isNow;
  byId("whatif-apply").textContent = `Set the limit to ${limit} now`;
  byId("whatif-submit").hidden = !job;
  const later = limit && !isNow ? "Limits at later times belong into the configuration: budget names a file of times and limits." : "";
  const adopt = policy ? `To adopt the policy, write policy = "${policy}" into the configuration and send HUP to the daemon.` : "";
  setText("whatif-adopt", [later, adopt].filter(Boolean).join(" "));
}

function watchWhatIf(changed) {
  const form = byId("whatif-form"), answer = byId("whatif-answer");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await doing(answer, event.submitter, tryOut)) byId("whatif-result-title").focus({ preventScroll: true });
  });
  form.addEventListener("reset", () => { byId("whatif-result").hidden = true; answer.textContent = ""; whatIf = null; });
  byId("whatif-apply").addEventListener("click", ({ currentTarget }) => doing(answer, currentTarget, () => setLimit(whatIf.question.budget[0].limit, changed)));
  byId("whatif-submit").addEventListener("click", () => {
    const { nodes } = whatIf.question.job;
    byId("submit-nodes").value = nodes;
    byId("submit-time").value = byId("whatif-time").value.trim() || USUAL_JOB.time;
    byId("submit-command").focus();
  });
}
