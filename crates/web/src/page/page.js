// What the page knows of the daemon, when it asks again, and which part of it is shown.

const known = { status: null, jobs: [], nodes: [], forecast: null, samples: [], lately: [] };

/** How old parts may get: after something happened, and otherwise; in seconds. */
const AGES = { lists: [2, 10], forecast: [10, 30], samples: [10, 10], finished: [5, 60], usage: [60, 300], past: [60, 60] };
const LATEST = 12;

/** When each part was last asked for, how long the answer took, and whether something has happened since. */
const parts = Object.fromEntries(Object.keys(AGES).map((name) => [name, { at: -Infinity, took: 0, isOld: true, isAsked: false }]));

const READ = {
  async lists() {
    const [list, nodes] = await Promise.all([ask("jobs"), ask("nodes")]);
    known.jobs = list.jobs;
    known.nodes = nodes;
  },
  async forecast() { known.forecast = await ask("forecast"); },
  async samples() {
    const last = known.samples.at(-1)?.at_s, latest = await ask(`power?since=${last ?? Math.floor(secondsNow()) - 86400}`);
    // The last sample may not have been complete.
    const kept = known.samples.filter(({ at_s: at }) => at < (latest[0]?.at_s ?? Infinity) && at > secondsNow() - 86400);
    known.samples = [...kept, ...latest];
  },
  // Pages further back stay as the reader turned them.
  async finished() { if (finishedPages.length === 1) await readFinished(); },
  usage: readUsage,
  past: readPast,
};

/** Asks for a part again. A daemon that takes long to answer is asked less often. */
async function refresh(name) {
  const part = parts[name];
  if (part.isAsked) return;
  const began = performance.now();
  Object.assign(part, { isAsked: true, isOld: false });
  try {
    await READ[name]();
  } finally {
    part.isAsked = false;
    part.at = performance.now();
    part.took = (part.at - began) / 1000;
  }
}

const isDue = ({ at, took, isOld }, [soon, late]) => (performance.now() - at) / 1000 >= Math.max(isOld ? soon : late, 4 * took);

/** After a change by the reader everything is asked for at once. */
function changed() {
  for (const part of Object.values(parts)) Object.assign(part, { at: -Infinity, took: 0, isOld: true });
  tick();
}

let chartsDrawnAt = -Infinity;

/** Draws the charts, at most every two seconds, and only where they can be seen. */
function drawCharts(force = false) {
  if (!known.status || (!force && performance.now() - chartsDrawnAt < 2000)) return;
  chartsDrawnAt = performance.now();
  if (byId("overview").hidden) return;
  drawHours(known);
  drawPast();
  if (force) drawWhatIf();
}

function show() {
  if (!known.status) return;
  const began = performance.now();
  if (!byId("overview").hidden) {
    showJobs(known);
    showNodes(known.nodes);
    showFinished();
    showUsage();
  }
  drawCharts();
  document.documentElement.dataset.shown = (performance.now() - began).toFixed(1);
}

async function tick() {
  if (!isConnected || document.hidden) return;
  const due = Object.keys(AGES).filter((name) => isDue(parts[name], AGES[name]));
  const results = await Promise.allSettled(due.map(refresh));
  const failed = results.find(({ status, reason }) => status === "rejected" && !(reason instanceof Refused && reason.status === 429));
  if (failed) console.debug(failed.reason);
  if (due.length) show();
  if (jobShown !== null && (due.includes("lists") || due.includes("forecast"))) showJobOrWhy();
}

async function showJobOrWhy() {
  try {
    if (known.status) await showJob(jobShown, known);
  } catch (error) {
    if (error instanceof Refused) setText("job-why", `This job cannot be shown: ${error.message}.`);
  }
}

/** What the stream of events says. */
function heard(kind, data) {
  lastHeard = performance.now();
  if (kind === "status") {
    known.status = data;
    showPower(data);
    showFeeds(data);
    showBudget(data);
    showPolicy(data);
  } else if (kind === "history" || kind === "missed") {
    parts.lists.isOld = parts.forecast.isOld = true;
    if (kind === "missed" || data.what.ended) parts.finished.isOld = parts.usage.isOld = true;
    // A line may come both with what was asked for at the beginning and in the stream.
    if (kind === "history" && !known.lately.some(({ line }) => line === data.line)) {
      known.lately = [data, ...known.lately].slice(0, LATEST);
      showLately();
    }
  }
}

const showLately = () => keepList("lately", known.lately.map((line) => [clockTime(line.wall_s, true), eventWords(line)]));

// The connection. It is given up while nobody looks, as browsers allow only six of them to one daemon.

let isConnected = false, lastHeard = 0, lostSince = null;
const SILENCE = 10000;
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const whenSeen = () => new Promise((resolve) => {
  if (!document.hidden) { resolve(); return; }
  const look = () => { if (!document.hidden) { document.removeEventListener("visibilitychange", look); resolve(); } };
  document.addEventListener("visibilitychange", look);
});

function setConnected(now, why = "") {
  isConnected = now;
  lostSince = now ? null : lostSince ?? secondsNow();
  document.body.classList.toggle("stale", !now);
  byId("lost").hidden = now;
  setText("connection", now ? "● live" : "○ not connected");
  if (!now) setText("lost", `${why} since ${clockTime(lostSince, true)}. What is shown is from then. The page tries again by itself.`);
}

/** One life of the connection: until it breaks, falls silent, or nobody looks any more. */
async function connect() {
  const life = new AbortController();
  const watch = setInterval(() => {
    if (document.hidden || performance.now() - lastHeard > SILENCE) life.abort();
  }, 1000);
  try {
    lastHeard = performance.now();
    await recallToken();
    const [status, lately] = await Promise.all([ask("status", { signal: life.signal }), ask(`history?limit=${LATEST}`, { signal: life.signal })]);
    known.lately = lately.reverse();
    showLately();
    setConnected(true);
    heard("status", status);
    changed();
    await follow(heard, life.signal);
  } finally {
    clearInterval(watch);
    life.abort();
  }
}

async function stayConnected() {
  for (;;) {
    await whenSeen();
    let why = "The daemon does not answer";
    try {
      await connect();
    } catch (error) {
      if (error instanceof Refused && error.status === 401) {
        forgetToken();
        if (await askForToken("This daemon shows its page only to those who have a token.")) continue;
        why = "This page needs a token, and shows nothing";
      } else if (error instanceof Refused) {
        why = `The daemon refuses to answer (${error.message})`;
      }
    }
    if (document.hidden) continue;
    setConnected(false, why);
    await pause(2000);
  }
}

// Which part is shown: everything, or one job.

function route() {
  const before = jobShown, match = location.hash.match(/^#\/jobs\/(\d+)$/);
  byId("overview").hidden = Boolean(match);
  byId("job").hidden = !match;
  if (match) {
    clearJob(Number(match[1]));
    byId("job-title").focus({ preventScroll: true });
    scrollTo(0, 0);
    showJobOrWhy();
    return;
  }
  jobShown = null;
  show();
  if (before !== null) {
    drawCharts(true);
    const target = byId(location.hash.slice(1)) ?? byId("content");
    target.scrollIntoView();
    document.querySelector(`a[href="#/jobs/${before}"]`)?.focus({ preventScroll: true });
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const other = theme === "dark" ? "light" : "dark";
  byId("theme").textContent = other === "dark" ? "Dark" : "Light";
  byId("theme").setAttribute("aria-label", `Switch to ${other} colours`);
}

function watchTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)"), chosen = () => localStorage.getItem("busbar-theme");
  const apply = () => { setTheme(chosen() ?? (system.matches ? "dark" : "light")); drawCharts(true); if (jobShown !== null) showJobOrWhy(); };
  apply();
  system.addEventListener("change", apply);
  byId("theme").addEventListener("click", () => {
    localStorage.setItem("busbar-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    apply();
  });
}

function begin() {
  watchTheme();
  watchNodes();
  watchBudget(changed);
  watchSubmit(changed);
  watchWhatIf(changed);
  watchPast();
  for (const id of ["running", "queue"]) watchButtons(byId(id), byId("jobs-answer"), changed);
  watchButtons(byId("job-buttons"), byId("job-answer"), changed);
  byId("queue-filter").addEventListener("input", () => showJobs(known));
  for (const id of ["running", "queue"]) byId(`${id}-more`).addEventListener("click", () => { shownRows[id] += PAGE_OF_ROWS; showJobs(known); });
  byId("hours").addEventListener("change", () => drawCharts(true));
  byId("token").addEventListener("click", async () => {
    if (token.get()) forgetToken();
    else await askForToken("With a token this page can change the budget, and submit and manage jobs.");
    changed();
  });
  addEventListener("hashchange", route);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) tick(); });
  route();
  setInterval(tick, 1000);
  stayConnected();
  document.documentElement.dataset.ready = Math.round(performance.now());
}

begin();
