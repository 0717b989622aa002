// The feeds of the machine: what each may carry, what is in use below it, and setting another limit.

/** Feeds, each followed by those below it, with how many are above it. */
function inATree(feeds) {
  const found = [], add = (parent, depth) => {
    for (const feed of feeds.filter(({ parent: above = null }) => above === parent)) {
      found.push({ ...feed, depth });
      add(feed.name, depth + 1);
    }
  };
  add(null, 0);
  return found;
}

/** What is in use below a feed: the power of its idle nodes, and what jobs hold on them. */
const usedBelow = (feed) => sum(feed.base_w, feed.held_w);

function feedRow() {
  const row = emptyRow(["", "", "wide-only", "", "wide-only", "reason"]);
  row.children[1].append(element("span"), element("i", { className: "share" }, element("b")));
  return row;
}

function fillFeed(row, feed) {
  const used = usedBelow(feed), [name, use, limit, free, nodes, remark] = row.children;
  const share = feed.limit_w ? used / feed.limit_w : null, isOver = feed.limit_w !== null && used > feed.limit_w;
  fillCell(name, feed.name);
  name.style.paddingInlineStart = `${0.5 + 1.1 * feed.depth}rem`;
  fillCell(use.firstElementChild, `${isOver ? "▲ " : ""}${watts(used)}${share === null ? "" : ` (${(100 * share).toFixed(0)} %)`}`);
  use.lastElementChild.hidden = share === null;
  use.lastElementChild.firstElementChild.style.width = `${Math.min(100, 100 * (share ?? 0))}%`;
  row.dataset.verdict = isOver ? "over" : "within";
  fillCell(limit, limitWords(feed.limit_w));
  fillCell(free, feed.free_w === null ? "no limit" : watts(feed.free_w));
  fillCell(nodes, String(feed.nodes));
  const [next] = feed.to_come;
  const remarks = [
    feed.measured_w === undefined ? null : `measured ${watts(feed.measured_w)}`,
    feed.set_by_operator ? "set by an operator" : null,
    next ? `${limitWords(next.limit_w)} from ${clockTime(next.at_s)} on` : null,
    feed.notice,
  ];
  fillCell(remark, remarks.filter(Boolean).join("; "));
}

function showFeeds({ power: { feeds = [] } }) {
  for (const id of ["feeds-section", "feeds-link", "budget-of-label"]) byId(id).hidden = !feeds.length;
  if (!feeds.length) return;
  const tree = inATree(feeds);
  keepRows(byId("feeds").tBodies[0], tree, ({ name }) => name, feedRow, fillFeed);
  const full = tree.filter((feed) => feed.limit_w !== null && usedBelow(feed) > feed.limit_w);
  setText("feeds-note", full.length ? `Over their limits: ${full.map(({ name }) => name).join(", ")}.` : `${counted(tree.length, "feed")}, none of them over its limit. Idle nodes count as in use.`);
  const chosen = byId("budget-of"), names = ["", ...tree.map(({ name }) => name)];
  if (chosen.dataset.key === names.join("\n")) return;
  const before = chosen.value;
  chosen.dataset.key = names.join("\n");
  chosen.replaceChildren(...names.map((name) => element("option", { value: name, textContent: name ? `feed ${name}` : "the machine" })));
  chosen.value = names.includes(before) ? before : "";
}

/** The feed whose limit is to be set; nothing for the machine. */
const feedChosen = () => (byId("budget-of-label").hidden ? "" : byId("budget-of").value);

/** Sets the limit of a feed, and says what holds from now on. */
async function setFeed(name, limit, changed) {
  const power = await change(`budget/feeds/${encodeURIComponent(name)}`, "PUT", { limit });
  changed();
  const feed = power.feeds.find((one) => one.name === name);
  return feed.limit_w === null ? `Feed ${name} has no limit.` : `The limit of feed ${name} is ${watts(feed.limit_w)}.`;
}

/** The reset goes back to the configured limit of what is chosen. */
function showReset({ power }) {
  const feed = (power.feeds ?? []).find(({ name }) => name === feedChosen());
  byId("budget-reset").hidden = !(feed ?? power).set_by_operator;
}
