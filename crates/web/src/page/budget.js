// The budget in force, the limits to come, and the policy with what it may do.

function showBudget(status) {
  const { limit_w: limit, set_by_operator: isSet, to_come: next } = status.power;
  setText("budget-now", `${limit === null ? "There is no limit" : `The limit is ${watts(limit)}`}, ${isSet ? "set by an operator" : "as configured"}.`);
  showReset(status);
  const lines = next.map(({ at_s: at, limit_w: power }) => [clockTime(at), limitWords(power)]);
  const nothing = isSet ? "The limit stays until it is changed." : "No change: the configured budget is the same at all times.";
  keepList("to-come", lines.length ? lines : [[null, nothing]]);
}

/** A list of times and texts. */
function keepList(id, lines) {
  const place = byId(id), key = JSON.stringify(lines);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  place.replaceChildren(...lines.map(([at, text]) => element("li", {}, ...(at === null ? [] : [element("time", { textContent: at })]), text)));
}

function showPolicy(status) {
  setText("policy", status.policy);
  const { freedoms } = status;
  setText("freedoms-about", freedoms.length ? "Beyond starting jobs as they were requested, it may" : "It starts jobs as they were requested, and changes nothing about them.");
  const place = byId("freedoms");
  if (place.dataset.key !== freedoms.join()) {
    place.dataset.key = freedoms.join();
    place.replaceChildren(...freedoms.map((name) => element("li", { textContent: FREEDOMS[name] ?? name })));
  }
  byId("proposal").hidden = !status.proposal;
  if (status.proposal) setText("proposal", `A replay of the past: ${status.proposal.text}, on the last ${status.proposal.figures.jobs} finished jobs.`);
  setText("daemon", `Daemon ${status.version}, ${status.engine}, since ${clockTime(status.since_s)}. The longest of its latest control cycles took ${(1000 * status.longest_cycle_s).toFixed(1)} ms.`);
}

/** Sets a limit, and says what holds from now on. */
async function setLimit(limit, changed) {
  const power = await change("budget", "PUT", { limit });
  changed();
  const [next] = power.to_come, until = next ? `until ${clockTime(next[0])}` : "from now on";
  return power.limit_w === null ? `There is no limit ${until}.` : `The limit is ${watts(power.limit_w)} ${until}.`;
}

function watchBudget(changed) {
  const form = byId("budget-form"), answer = byId("budget-answer");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    doing(answer, event.submitter, async () => {
      const feed = feedChosen(), limit = byId("budget-limit").value.trim();
      const said = await (feed ? setFeed(feed, limit, changed) : setLimit(limit, changed));
      form.reset();
      return said;
    });
  });
  byId("budget-reset").addEventListener("click", ({ currentTarget }) => doing(answer, currentTarget, async () => {
    const feed = feedChosen();
    await change(feed ? `budget/feeds/${encodeURIComponent(feed)}` : "budget", "DELETE");
    changed();
    return feed ? `The configured limit of feed ${feed} holds again.` : "The configured budget holds again.";
  }));
  byId("budget-of").addEventListener("change", () => { if (known.status) showReset(known.status); });
  byId("budget-try").addEventListener("click", () => {
    byId("whatif-limit").value = byId("budget-limit").value;
    byId("whatif-from").value = "0";
    byId("whatif-section").scrollIntoView();
    if (byId("budget-limit").value.trim()) byId("whatif-form").requestSubmit();
    else byId("whatif-limit").focus();
  });
}
