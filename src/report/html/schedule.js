// The schedule. The rectangles, which may be several hundred thousand, are painted into a picture of just the
// window that is seen, and painted anew when it changes. Rectangles narrower than a pixel shade it by their
// share of it, so the whole run and one job are drawn alike.

/** What colours mean: for each kind, the upper ends of its classes. */
const CLASSES = {
  wait: { ends: [1, 600, 3600, 6 * 3600, 86400], words: ["none", "up to 10 min", "1 h", "6 h", "1 day", "more"], of: (run, job) => run.wait[job] / 1000 },
  slowdown: { ends: [1.0001, 2, 5, 20, 100], words: ["1", "up to 2", "5", "20", "100", "more"], of: (run, job) => run.slowdown[job] / 10000 },
  cap: { of: (run, job) => run.cap[job] / 1000 },
};

/** Power has no natural classes: equal parts of what there is. */
function classesOf(run, kind) {
  if (kind !== "cap") return CLASSES[kind];
  let most = 0, least = Infinity;
  for (const cap of run.cap) if (cap > 0) { most = Math.max(most, cap / 1000); least = Math.min(least, cap / 1000); }
  if (!(least < most)) return { ends: [], words: [least < Infinity ? scaled(most, "W") : "none"], of: CLASSES.cap.of };
  const ends = [1, 2, 3, 4, 5].map((part) => least + (most - least) * part / 6);
  return { ends, words: [...ends, most].map((end, i) => `${i ? "" : "up to "}${scaled(end, "W")}`), of: CLASSES.cap.of };
}

/** The rectangles of a run: when each begins and ends, and the class of its colour. */
function rectangles(run, kind) {
  run.rectangles ??= {};
  if (run.rectangles[kind]) return run.rectangles[kind];
  const { job, late, early } = run.bars, count = job.length;
  const { ends, of } = classesOf(run, kind), { submit } = run.workload;
  const from = new Float64Array(count), until = new Float64Array(count), shade = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const who = job[i], start = submit[who] + run.wait[who];
    from[i] = start + late[i];
    until[i] = start + run.run[who] - early[i];
    const value = of(run, who);
    let c = 0;
    while (c < ends.length && value > ends[c]) c++;
    shade[i] = c;
  }
  return (run.rectangles[kind] = { from, until, shade });
}

/** The picture of a window: times in milliseconds, lanes, size in pixels. Of each pixel the share that is
    covered is added up, and so are the colours, each by its share. Rectangles never overlap, so the
    work is bounded by the pixels and the rectangles, not by their product. */
function painted(run, kind, window, lanes, width, height) {
  const { from, until, shade } = rectangles(run, kind), { lane, lanes: high } = run.bars;
  const colours = [0, 1, 2, 3, 4, 5].map((step) => channels(ink(`step-${step}`)));
  const covered = new Float32Array(width * height), sums = new Float32Array(3 * width * height);
  const acrossOne = width / (window[1] - window[0]), upOne = height / (lanes[1] - lanes[0]);
  let count = 0;
  for (let i = 0; i < from.length; i++) {
    if (until[i] <= window[0] || from[i] >= window[1] || lane[i] >= lanes[1] || lane[i] + high[i] <= lanes[0]) continue;
    count++;
    let left = (from[i] - window[0]) * acrossOne, right = (until[i] - window[0]) * acrossOne;
    let bottom = height - (lane[i] - lanes[0]) * upOne, top = bottom - high[i] * upOne;
    // Neighbours of one colour are told apart where there is room for a gap.
    if (right - left > 5) right -= 1;
    if (bottom - top > 5) top += 1;
    left = Math.max(0, left); right = Math.min(width, right);
    top = Math.max(0, top); bottom = Math.min(height, bottom);
    const [r, g, b] = colours[shade[i]];
    for (let y = Math.floor(top); y < bottom; y++) {
      const tall = Math.min(y + 1, bottom) - Math.max(y, top);
      for (let x = Math.floor(left); x < right; x++) {
        const share = tall * (Math.min(x + 1, right) - Math.max(x, left)), at = y * width + x;
        covered[at] += share;
        sums[3 * at] += share * r; sums[3 * at + 1] += share * g; sums[3 * at + 2] += share * b;
      }
    }
  }
  const canvas = element("canvas", { width, height }), brush = canvas.getContext("2d");
  const picture = brush.createImageData(width, height), pixels = picture.data;
  for (let at = 0; at < covered.length; at++) {
    if (covered[at] === 0) continue;
    for (const part of [0, 1, 2]) pixels[4 * at + part] = sums[3 * at + part] / covered[at];
    pixels[4 * at + 3] = 255 * Math.min(1, covered[at]);
  }
  brush.putImageData(picture, 0, 0);
  return { source: canvas.toDataURL(), count };
}

function drawSchedule(view) {
  const run = view.runs[Number(byId("schedule-run").value)] ?? view.shown[0] ?? view.runs[0];
  const kind = byId("schedule-colour").value, place = byId("schedule");
  const nothing = run && run.bars.job.length ? "" : "No job ran.";
  const key = nothing ? [] : classesOf(run, kind).words.map((name, step) => ({ name, colour: ink(`step-${step}`) }));
  byId("schedule-key").replaceChildren(...key.map(({ name, colour }) => {
    const box = element("i");
    box.style.background = colour;
    return element("span", {}, box, name);
  }));
  if (nothing) {
    byId("schedule-note").textContent = "";
    draw("schedule", {}, nothing);
    return;
  }
  const nodes = run.summary.nodes;
  view.lanes ??= [0, nodes];
  const { lanes, window } = view, sharpness = Math.min(2, devicePixelRatio || 1);
  const paint = (width, height) => {
    const { source, count } = painted(run, kind, window, lanes, Math.round(width * sharpness), Math.round(height * sharpness));
    place.dataset.count = count;
    byId("schedule-note").textContent = `${count.toLocaleString("en")} of ${counted(run.bars.job.length, "rectangle")} in this window.`;
    return source;
  };
  const onZoom = (ranges) => {
    if (ranges?.y) view.lanes = ranges.y;
    followZoom(ranges);
  };
  view.scheduled = { run, kind };
  TABLES.set("schedule", () => scheduleTable(view));
  draw("schedule", { x: timeAxis(view), y: { title: "nodes", range: lanes }, paint, key, hover: (when, where) => jobAt(run, kind, when, where), zoom: "xy", onZoom });
}

/** The rectangles of the window that is seen, as a table. */
function scheduleTable({ scheduled: { run, kind }, window, lanes }) {
  const { from, until } = rectangles(run, kind), { job, lane, lanes: high } = run.bars, rows = [];
  for (let i = 0; i < from.length; i++) {
    if (until[i] <= window[0] || from[i] >= window[1] || lane[i] >= lanes[1] || lane[i] + high[i] <= lanes[0]) continue;
    const who = job[i];
    rows.push([jobName(run.workload, who), from[i] / 1000, until[i] / 1000, lane[i], high[i], run.wait[who] / 1000, run.slowdown[who] / 10000, run.cap[who] / 1000]);
  }
  return [["job", "from_s", "until_s", "first_lane", "lanes", "wait_s", "bounded_slowdown", "node_power_w"], rows];
}

/** The rectangle at a place, if there is one. */
function rectangleAt(run, kind, when, where) {
  const { from, until } = rectangles(run, kind), { lane, lanes } = run.bars;
  for (let i = 0; i < from.length; i++) {
    if (from[i] <= when && until[i] > when && lane[i] <= where && lane[i] + lanes[i] > where) return i;
  }
  return -1;
}

/** What there is to say about the job at a place. */
function jobAt(run, kind, when, where) {
  const found = rectangleAt(run, kind, when, where);
  if (found < 0) return null;
  const job = run.bars.job[found], start = run.workload.submit[job] + run.wait[job];
  return `Job ${jobName(run.workload, job)}\n${counted(run.nodes[job], "node")}, ${scaled(run.cap[job] / 1000, "W")} each\n` +
    `starts ${dateOf(start)}\nruns ${time(run.run[job] / 1000)}\nwaited ${time(run.wait[job] / 1000)}, slowdown ${(run.slowdown[job] / 10000).toFixed(2)}`;
}
