// The schedule. The rectangles, which may be several hundred thousand, are painted into a picture of just the
// window that is seen, and painted anew when it changes. Rectangles narrower than a pixel shade it by their
// share of it, so the whole run and one job are drawn alike.

/** What colours mean: for each kind, the names of its classes. Where classes end, the page's data say. */
const CLASSES = {
  wait: { words: ["none", "up to 10 min", "1 h", "6 h", "1 day", "more"], of: (run, job) => run.wait[job] },
  slowdown: { words: ["1", "up to 2", "5", "20", "100", "more"], of: (run, job) => run.slowdown[job] },
  cap: { of: (run, job) => run.cap[job] },
};

/** Power has no natural classes: equal parts of what there is. */
function classesOf(run, kind) {
  if (kind !== "cap") return CLASSES[kind];
  let [least, most] = run.rest?.caps ?? [Infinity, 0];
  if (!run.rest) for (const cap of run.cap) if (cap > 0) { most = Math.max(most, cap); least = Math.min(least, cap); }
  const watts = (cap) => scaled(cap / 1000, "W");
  if (!(least < most)) return { ends: [], words: [most > 0 ? watts(most) : "none"], of: CLASSES.cap.of };
  const ends = [1, 2, 3, 4, 5].map((part) => least + (most - least) * part / 6);
  return { ends, words: [...ends, most].map((end, i) => `${i ? "" : "up to "}${watts(end)}`), of: CLASSES.cap.of };
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

/** How many steps of shade a tile has. */
const SHADES = 63;

/** The tiles of jobs that the page does not hold one by one: how much of each they cover where single jobs leave it
    free, and in which colour. */
function tiles(run, kind, colours) {
  const classes = run.rest[kind], count = classes[0].length;
  const share = new Float32Array(count), mixed = new Float32Array(3 * count);
  for (let at = 0; at < count; at++) {
    classes.forEach((shades, step) => {
      if (!shades[at]) return;
      share[at] += shades[at] / SHADES;
      for (const part of [0, 1, 2]) mixed[3 * at + part] += shades[at] / SHADES * colours[step][part];
    });
  }
  return { share, mixed };
}

/** Where a place of the window is among equal parts: the part for each pixel. */
const partsOf = (pixels, from, until, begin, size) =>
  Int32Array.from({ length: pixels }, (_, pixel) => Math.floor((from + (until - from) * (pixel + 0.5) / pixels - begin) / size));

/** Shades what single jobs leave of a picture. */
function shadeRest(run, kind, window, lanes, width, height, colours, covered, sums) {
  const { begin, width: wide, height: high, across } = run.rest, { share, mixed } = tiles(run, kind, colours);
  const columns = partsOf(width, ...window, begin, wide), rows = partsOf(height, lanes[1], lanes[0], 0, high);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const column = columns[x], tile = rows[y] * across + column;
      if (column < 0 || column >= across || !(share[tile] > 0)) continue;
      const at = y * width + x, free = 1 - covered[at];
      if (free <= 0) continue;
      covered[at] += free * Math.min(1, share[tile]);
      for (const part of [0, 1, 2]) sums[3 * at + part] += free * mixed[3 * tile + part] / Math.max(1, share[tile]);
    }
  }
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
  if (run.rest) shadeRest(run, kind, window, lanes, width, height, colours, covered, sums);
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
    byId("schedule-note").textContent = `${count.toLocaleString("en")} of ${counted(run.bars.job.length, "rectangle")} in this window.${leftOut(run)}`;
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

/** What the page has no room for, in words. */
function leftOut({ rest, state }) {
  if (!rest) return "";
  return ` This page holds ${counted(state.length, "job")} one by one, those with the most node time, which have ${(100 - rest.share / 10).toFixed(1)} % of it. ` +
    `The other ${counted(rest.jobs, "job")} shade what they cover, and no zoom shows them singly.`;
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
  if (found < 0) return shadeAt(run, kind, when, where);
  const job = run.bars.job[found], start = run.workload.submit[job] + run.wait[job];
  return `Job ${jobName(run.workload, job)}\n${counted(run.nodes[job], "node")}, ${scaled(run.cap[job] / 1000, "W")} each\n` +
    `starts ${dateOf(start)}\nruns ${time(run.run[job] / 1000)}\nwaited ${time(run.wait[job] / 1000)}, slowdown ${(run.slowdown[job] / 10000).toFixed(2)}`;
}

/** What there is to say where no single job is. */
function shadeAt({ rest }, kind, when, where) {
  if (!rest) return null;
  const place = Math.floor(where / rest.height) * rest.across + Math.floor((when - rest.begin) / rest.width);
  const share = rest[kind].reduce((sum, shades) => sum + (shades[place] ?? 0), 0) / SHADES;
  return share ? `Jobs that are not shown one by one\ncover ${(100 * Math.min(1, share)).toFixed(0)} % of what others leave here` : null;
}
