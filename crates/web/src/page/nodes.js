// The nodes as a map: what runs where, under which cap, drawing how much.

/** Beyond so many nodes a cell has no room for words. */
const WORDED_NODES = 64;

/** The state of a node for the map. */
function cellState({ state, job, switched }) {
  if (switched) return "off";
  if (typeof state === "object") return Object.keys(state)[0];
  return state === "awaited" ? "awaited" : job === null ? "idle" : "busy";
}

const nodeName = (line) => line.name ?? `node ${line.node}`;

/** A node in a sentence. */
function nodeWords(line) {
  const state = typeof line.state === "object" || line.state === "awaited" ? `${nodeStateWords(line.state)}; ` : "";
  const job = line.job === null ? "no job runs there" : `runs job ${line.job} ${line.cap_w === null ? "without a cap" : `under a cap of ${watts(line.cap_w)}`}`;
  const drawn = line.measured ? `, draws ${watts(line.measured.power_w)} (${line.measured.is_emulated ? "emulated" : "measured"} at ${clockTime(line.measured.at_s, true)})` : "";
  return `${nodeName(line)} ${state}${job}${drawn}`;
}

/** The line in a cell about power, short enough for it. */
function cellWatts({ cap_w: cap, measured, job }) {
  if (job === null) return measured ? watts(measured.power_w) : "";
  const most = cap === null ? "no cap" : `cap ${watts(cap)}`;
  return measured ? `${watts(measured.power_w)}, ${most}` : most;
}

/** What a full cell means: the largest cap or draw of any node. */
const fullCell = (nodes) => nodes.reduce((most, { cap_w: cap, measured }) => Math.max(most, cap ?? 0, measured?.power_w ?? 0), 0.001);

let nodesShown = [], chosenNode = null;

function showNodes(nodes) {
  nodesShown = nodes;
  const map = byId("map"), full = fullCell(nodes);
  map.classList.toggle("small", nodes.length > WORDED_NODES);
  while (map.children.length > nodes.length) map.lastElementChild.remove();
  nodes.forEach((line, at) => {
    const level = Math.round(100 * (line.measured?.power_w ?? line.cap_w ?? 0) / full);
    const texts = [nodeName(line), line.job === null ? stateInCell(line) : `job ${line.job}`, cellWatts(line)];
    const key = [cellState(line), level, ...texts].join("|");
    let cell = map.children[at];
    if (!cell) {
      cell = element("li", {}, element("b"), " ", element("span"), " ", element("span"));
      cell.dataset.at = at;
      map.append(cell);
    }
    // Most nodes are as they were; those are not touched.
    if (cell.dataset.key === key) return;
    cell.dataset.key = key;
    cell.dataset.state = cellState(line);
    cell.style.setProperty("--level", `${level}%`);
    [cell.children[0], cell.children[1], cell.children[2]].forEach((part, i) => fillCell(part, texts[i]));
  });
  const count = (state) => nodes.filter((line) => cellState(line) === state).length;
  const kinds = [["busy", "run a job"], ["idle", "are idle"], ["drained", "take no new jobs"], ["down", "are down"], ["awaited", "are awaited"], ["off", "are off, or on the way there or back"]];
  const parts = kinds.map(([state, words]) => [count(state), words]).filter(([number]) => number).map(([number, words]) => `${number.toLocaleString("en")} ${words}`);
  setText("nodes-note", `Of ${counted(nodes.length, "node")}, ${parts.join(", ")}.${full > 0.001 ? ` A cell is full at ${watts(full)}: its draw where it is measured, else its cap.` : ""}`);
  showChosen();
}

const stateInCell = (line) => ({ idle: "idle", drained: "no new jobs", down: "down", awaited: "awaited", off: line.switched, busy: "" })[cellState(line)];

function showChosen() {
  const map = byId("map"), line = chosenNode === null ? null : nodesShown[chosenNode];
  for (const cell of map.querySelectorAll(".chosen")) if (Number(cell.dataset.at) !== chosenNode) cell.classList.remove("chosen");
  if (!line) return;
  map.children[chosenNode].classList.add("chosen");
  const text = nodeWords(line), place = byId("node-detail");
  if (place.dataset.text === text) return;
  place.dataset.text = text;
  place.replaceChildren(text, ...(line.job === null ? [] : [" – ", element("a", { href: `#/jobs/${line.job}`, textContent: `show job ${line.job}` })]));
}

/** One listener for all nodes, by pointer and by keys. */
function watchNodes() {
  const map = byId("map");
  const choose = (at) => { chosenNode = Math.max(0, Math.min(nodesShown.length - 1, at)); showChosen(); };
  map.addEventListener("click", ({ target }) => {
    const cell = target.closest("li");
    if (cell) choose(Number(cell.dataset.at));
  });
  map.addEventListener("keydown", (event) => {
    const columns = getComputedStyle(map).gridTemplateColumns.split(" ").length;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    const to = event.key === "Home" ? 0 : event.key === "End" ? nodesShown.length - 1 : by === undefined ? null : chosenNode === null ? 0 : chosenNode + by;
    if (to === null || !nodesShown.length) return;
    event.preventDefault();
    choose(to);
    map.children[chosenNode].scrollIntoView({ block: "nearest" });
  });
}
