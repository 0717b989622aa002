// What the page carries, unpacked: text that is compressed, and columns of whole numbers.

/** The bytes behind base64 letters. */
function bytesOf(letters) {
  const text = atob(letters);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** The text that a script element holds, compressed. */
async function inflated(id) {
  const packed = new Blob([bytesOf(document.getElementById(id).textContent)]);
  const stream = packed.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** A column as `Column` in Rust packs it: the way, a divisor, a count, and numbers of seven bits a byte. */
function column(letters) {
  const bytes = bytesOf(letters);
  let at = 1;
  const next = () => {
    let number = 0, place = 1, byte;
    // Not by shifts: they end at 32 bits.
    do { byte = bytes[at++]; number += (byte & 127) * place; place *= 128; } while (byte > 127);
    return number;
  };
  const differs = bytes[0] === 1, divisor = next(), values = new Float64Array(next());
  let before = 0;
  for (let i = 0; i < values.length; i++) {
    const number = next();
    before = differs ? before + (number % 2 ? -(number + 1) / 2 : number / 2) : number;
    values[i] = before * divisor;
  }
  return values;
}

/** The object with every string under these keys made a column, and every list of them columns, when it is first asked for. */
function withColumns(object, keys) {
  for (const key of keys) {
    const letters = object[key];
    Object.defineProperty(object, key, {
      configurable: true,
      get() {
        const values = Array.isArray(letters) ? letters.map(column) : column(letters);
        Object.defineProperty(object, key, { value: values });
        return values;
      },
    });
  }
  return object;
}

/** What people call jobs whose number is another, by that number. */
let labels = new Map();

/** What people call a job. */
const jobName = (workload, job) => labels.get(workload.number[job]) ?? String(workload.number[job]);

/** All that the page is about. */
async function loaded() {
  const data = JSON.parse(await inflated("data"));
  labels = new Map(data.labels);
  for (const kind of ["wait", "slowdown"]) CLASSES[kind].ends = data.classes[kind];
  for (const workload of data.workloads) withColumns(workload, ["number", "submit"]);
  for (const run of data.runs) {
    run.workload = data.workloads[run.workload];
    for (const curve of [run.power, run.limit, run.busy, run.queue]) withColumns(curve, ["from", "low", "high", "mean"]);
    for (const ranks of [run.waits, run.slowdowns]) withColumns(ranks, ["values", "ranks"]);
    if (run.rest) withColumns(run.rest, ["wait", "slowdown", "cap"]);
    withColumns(run.bars, ["job", "late", "early", "lane", "lanes"]);
    withColumns(run, ["state", "wait", "run", "nodes", "cap", "slowdown"]);
  }
  return data;
}
