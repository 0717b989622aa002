// Submitting a job: a command, a folder, nodes and a time limit.

/** What a job without an environment of its own needs to find programs. */
const ENVIRONMENT = [["PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], ["LANG", "C.UTF-8"]];

/** What is asked for in a form, with what is usual where nothing is written, or an error in words. */
function wish(prefix, name, usual = {}) {
  const written = (what) => byId(`${prefix}-${what}`).value.trim() || usual[what] || "";
  const nodes = Number(written("nodes")), span = spanOf(written("time"));
  if (!Number.isInteger(nodes) || nodes < 1) throw new Refused(0, "the number of nodes must be 1 or more");
  if (span === null) throw new Refused(0, `'${written("time")}' is not a time; write 90s, 30m, 2h, 1d or HH:MM:SS`);
  return { name, nodes, time_s: span };
}

function watchSubmit(changed) {
  const form = byId("submit-form"), answer = byId("submit-answer");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    doing(answer, event.submitter, async () => {
      const command = byId("submit-command").value.trim(), folder = byId("submit-folder").value.trim();
      const name = byId("submit-name").value.trim() || command.split(/\s+/)[0].split("/").pop();
      const { job, remark } = await change("jobs", "POST", { wish: wish("submit", name),
        program: { command: ["/bin/sh", "-c", command], folder, environment: ENVIRONMENT, output: "busbar-%j.out" } });
      changed();
      return `Submitted job ${job}${remark ? `, which ${remark}` : ""}.`;
    });
  });
}
