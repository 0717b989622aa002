// Asking the daemon: one way to fetch, and the stream of what happens.

/** A request that the daemon refused, in its own words. */
class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** What somebody began and did not want after all. */
class Withdrawn extends Error {}

// The token stays in this tab: never in an address, and in no cookie that another page could make use of.
const TOKEN = "busbar-token";
const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
  forget: () => sessionStorage.removeItem(TOKEN),
};

/** How far the daemon's clock is ahead of this computer's, in seconds. */
let clockAhead = 0;
const secondsNow = () => Date.now() / 1000 + clockAhead;

function noteClock(response) {
  const at = Date.parse(response.headers.get("Date") ?? "") / 1000, ahead = at - Date.now() / 1000;
  // The header has whole seconds; less than two are no difference.
  if (Number.isFinite(ahead)) clockAhead = Math.abs(ahead) < 2 ? 0 : ahead;
}

async function send(path, { method = "GET", body, signal, using = token.get() } = {}) {
  const headers = {};
  if (using) headers.Authorization = `Bearer ${using}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(`/api/v2/${path}`, { method, headers, signal, cache: "no-store",
    body: body === undefined ? undefined : JSON.stringify(body) });
  noteClock(response);
  if (response.ok) return response;
  const unexplained = () => `the daemon answers with status ${response.status}`;
  const message = await response.json().then((answer) => answer.error?.message ?? unexplained(), unexplained);
  throw new Refused(response.status, message);
}

/** Asks for something, or has something done. */
const ask = async (path, options) => (await send(path, options)).json();

/** Reads events until the stream ends. `EventSource` cannot send a token, so the stream is read by hand. */
async function follow(heard, signal) {
  const response = await send("events", { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const event = { kind: "", data: "" };
      for (const line of part.split("\n")) {
        if (line.startsWith("event:")) event.kind = line.slice(6).trim();
        if (line.startsWith("data:")) event.data += line.slice(5);
      }
      heard(event.kind, event.data ? JSON.parse(event.data) : null);
    }
  }
}
