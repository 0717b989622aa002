// Jobs and events in words, as `busbar queue` and `busbar history` have them.

const watts = (power) => scaled(power, "W");
/** Watts or seconds, which have at most three decimals, added up without the dust that binary fractions leave. */
const sum = (...numbers) => Math.round(1000 * numbers.reduce((total, number) => total + number, 0)) / 1000;
const limitWords = (limit) => (limit === null ? "no limit" : watts(limit));
const two = (number) => String(number).padStart(2, "0");

/** A time of day by the reader's clock, with the date if it is another day. */
function clockTime(seconds, withSeconds = false) {
  const at = new Date(seconds * 1000), today = new Date(secondsNow() * 1000);
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}${withSeconds ? `:${two(at.getSeconds())}` : ""}`;
  if (at.toDateString() === today.toDateString()) return clock;
  return `${at.toLocaleDateString("en", { day: "numeric", month: "short", year: at.getFullYear() === today.getFullYear() ? undefined : "numeric" })}, ${clock}`;
}

/** A length of time as a clock shows it: `1:30:00`. */
function spanWords(length) {
  const seconds = Math.max(0, Math.floor(length)), days = Math.floor(seconds / 86400);
  const hours = Math.floor(seconds / 3600) % 24, rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  if (days) return `${days}-${two(hours)}:${rest}`;
  return hours ? `${hours}:${rest}` : rest.replace(/^0/, "");
}

/** A time limit as people type it, in seconds; nothing if it is none. */
function spanOf(text) {
  const units = { s: 1, m: 60, min: 60, h: 3600, d: 86400 };
  const clock = text.trim().match(/^(\d+):(\d\d):(\d\d)$/);
  if (clock) return ((Number(clock[1]) * 60 + Number(clock[2])) * 60 + Number(clock[3])) || null;
  const parts = text.trim().match(/^(?:(?:\d+(?:\.\d+)?)\s*(?:min|[smhd])\s*)+$/) ? [...text.matchAll(/(\d+(?:\.\d+)?)\s*(min|[smhd])/g)] : [];
  const total = sum(...parts.map(([, number, unit]) => Number(number) * units[unit]));
  return total || (/^\d+$/.test(text.trim()) ? Number(text) * units.m : 0) || null;
}

/** What users call a job: its number, or its place in an array. */
const jobNumber = (job) => (job.array ? `${job.array.array}_${job.array.index}` : String(job.job));

const isRunning = (job) => ["starting", "running", "suspended", "ending"].includes(job.state);
const isOver = (job) => ["completed", "failed", "timed_out", "cancelled", "lost"].includes(job.state);
const stateWords = (state) => state.replace("_", " ");

/** When a job is expected to start, in words; nothing if nobody knows. */
function startWords(plan) {
  if (!plan) return null;
  if (plan.start_s === null) return `is not expected to start${plan.reason ? `: ${plan.reason}` : ""}`;
  return plan.start_s <= secondsNow() ? "can start at any moment" : `predicted start ${clockTime(plan.start_s)}`;
}

/** Why a job waits, with what it lacks and until when. */
function whyItWaits(job, plan, status) {
  const needs = job.needs_w === undefined ? "power" : watts(job.needs_w);
  const { free_w: free, limit_w: limit } = status.power, idle = status.nodes[1];
  const reasons = {
    "for power": `waits for ${needs}${free === null ? "" : `; ${watts(free)} is free`}`,
    "for nodes": `waits for ${counted(job.nodes, "node")}; ${idle} ${idle === 1 ? "is" : "are"} free`,
    "for its turn": `waits for its turn behind other jobs; needs ${needs}`,
    "power is short": `waits because running jobs have less power than they need${limit === null ? "" : ` under ${watts(limit)}`}`,
    "until it is released": "held until it is released",
  };
  const after = job.reason?.match(/^after (\d+)$/);
  const reason = after ? `waits for job ${after[1]} to end` : reasons[job.reason] ?? `waits: ${job.reason ?? "for its turn"}`;
  // When it starts stands beside it; that it never does is a reason.
  const never = job.state !== "held" && plan && plan.start_s === null ? startWords(plan) : null;
  return never ? `${reason}; ${never}` : reason;
}

/** Numbers with ranges: `0-3, 7`. */
function rangeWords(numbers) {
  const ranges = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last && last[1] + 1 === number) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(", ");
}

const speedWords = (share) => `${(100 * share).toFixed(1)} %`;

function allotmentWords({ nodes, power_w: power, speed, cap_w: cap }) {
  const numbers = nodes.map(({ node }) => node);
  const slow = speed === 1 ? "" : ` at ${speedWords(speed)} of its speed`;
  return `on ${numbers.length === 1 ? "node" : "nodes"} ${rangeWords(numbers)} with ${watts(power)}, at most ${watts(cap)} a node${slow}`;
}

function endWords(end) {
  if (end === "lost") return "its exit code is unknown";
  const [[kind, value]] = Object.entries(end);
  return { exited: `exit code ${value}`, signalled: `ended by signal ${value}`, failed: `could not be run: ${value}` }[kind] ?? kind;
}

const END_REASONS = { cancelled: "cancelled", time_limit: "time limit reached", budget: "no power left for it", dependency: "a job it depends on failed", dropped: "dropped by the policy" };
const CHANGES = { policy: "the policy decided so", squeezed: "the budget fell", restored: "the budget rose", placed: "its nodes were chosen" };

function nodeStateWords(state) {
  if (state === "up") return "is in service";
  if (state === "awaited") return "is awaited";
  const [[kind, { reason }]] = Object.entries(state);
  return kind === "down" ? `is down: ${reason}` : `takes no new jobs: ${reason}`;
}

/** A line of the history: what was decided or happened, and why. */
function eventWords({ what, by_name: name }) {
  if (what === "stopped") return "the daemon stopped; jobs continue";
  const [[kind, event]] = Object.entries(what), job = `job ${event.job}`;
  const byWhom = (user) => (user === undefined ? "" : ` by ${name ?? `user ${user}`}`), by = byWhom(event.by);
  switch (kind) {
    case "began": return `the daemon started, version ${event.version}, policy ${event.policy}`;
    case "limit": return event.power_w === null ? "there is no limit" : `the limit is ${watts(event.power_w)}, of which the machine itself draws ${watts(event.base_w)}`;
    case "submitted": return `${job} was submitted${event.element ? `, which is ${event.element.join("_")}` : ""}`;
    case "held": return `${job} is ${event.held ? "held" : "released"}${by}`;
    case "started": return `${job} starts${event.attempt > 1 ? `, attempt ${event.attempt},` : ""} ${allotmentWords(event.allotment)}`;
    case "withdrawn": return `${job} did not start and waits again: ${event.reason}`;
    case "changed": return `${job} now runs ${allotmentWords(event.allotment)}: ${CHANGES[event.because] ?? event.because}`;
    case "node": return `node ${event.name ?? event.node} ${nodeStateWords(event.state)}`;
    case "consumed": return `${job} was ${event.emulated ? "emulated" : "measured"} to consume ${scaled(event.energy_j, "J")}, ${watts(event.power_w)} on average`;
    case "suspended": return `${job} is suspended: there is no power for it`;
    case "resumed": return `${job} goes on as before`;
    case "ending": return `${job} ${event.forced ? "is ended by force" : "is asked to end"}: ${END_REASONS[event.why] ?? event.why}${by}`;
    case "ended": {
      const { why, how, by: whom } = event.outcome;
      const reasons = [why && END_REASONS[why] + byWhom(whom), how && endWords(how)].filter(Boolean);
      return `${job} is over${reasons.length ? `: ${reasons.join(", ")}` : ""}`;
    }
    case "notice": return `notice: ${event.text}`;
    default: return kind;
  }
}

/** What each freedom lets the policy do. */
const FREEDOMS = {
  caps: "start a job under a power cap",
  sizes: "start a job on another number of nodes than requested",
  recaps: "change the cap of a running job",
  resizes: "change the number of nodes of a running job",
  nodes: "choose the nodes of a job, and a cap for each of them",
  drops: "give up a waiting job",
  switches: "switch nodes off and on",
};
