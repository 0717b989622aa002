// Dates and times of day beside axes, where it is known when a clock starts.

/** The start of the clock in milliseconds since 1970, and the time zone; null where nobody knows. */
let calendar = null;

function setCalendar([start, timeZone]) {
  const two = "2-digit";
  try {
    const parts = new Intl.DateTimeFormat("en-GB", { timeZone, hourCycle: "h23", year: "numeric", month: two, day: two, hour: two, minute: two, second: two });
    calendar = { start, timeZone, parts };
  } catch {
    // A browser that does not know the zone shows the time since the start.
    calendar = null;
  }
}

/** That of these runs, if all of them have the same. */
function setCalendarOf(runs) {
  const [first] = runs, is = (run) => run.start && run.start[0] === first.start[0] && run.start[1] === first.start[1];
  if (runs.length && runs.every(is)) setCalendar(first.start);
  else calendar = null;
}

/** What a clock on the wall shows, as milliseconds since 1970 on a wall of UTC. */
function wall(at) {
  const found = Object.fromEntries(calendar.parts.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(found.year, found.month - 1, found.day, found.hour, found.minute, found.second);
}

/** When a clock on the wall shows this. */
function unwall(shown) {
  let at = shown;
  for (let turn = 0; turn < 2; turn++) at = shown - (wall(at) - at);
  return at;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const twoDigits = (number) => String(number).padStart(2, "0");

/** How far apart marks may be: of which unit how many, and how long that is at least. */
const MARKS = [["second", 1, 1e3], ["second", 2, 2e3], ["second", 5, 5e3], ["second", 10, 10e3], ["second", 30, 30e3],
  ["minute", 1, 60e3], ["minute", 2, 120e3], ["minute", 5, 300e3], ["minute", 10, 600e3], ["minute", 30, 1800e3], ["hour", 1, 3600e3], ["hour", 2, 2 * 3600e3], ["hour", 3, 3 * 3600e3],
  ["hour", 6, 6 * 3600e3], ["hour", 12, 12 * 3600e3], ["day", 1, 86400e3], ["day", 2, 2 * 86400e3], ["day", 3, 3 * 86400e3], ["day", 7, 7 * 86400e3], ["day", 14, 14 * 86400e3],
  ["month", 1, 28 * 86400e3], ["month", 3, 84 * 86400e3], ["month", 6, 168 * 86400e3], ["year", 1, 365 * 86400e3], ["year", 10, 3650 * 86400e3]];

/** Round dates or times of day in a window of milliseconds since the start, at most so many, with how each is written. */
function dateMarks([from, until], most) {
  const [unit, count] = MARKS.find(([, , length]) => length * most >= until - from) ?? MARKS.at(-1);
  const first = new Date(wall(calendar.start + from)), marks = [];
  const year = first.getUTCFullYear(), month = first.getUTCMonth(), day = first.getUTCDate(), down = (number) => number - (number % count);
  const at = {
    second: (step) => Date.UTC(year, month, day, first.getUTCHours(), first.getUTCMinutes(), down(first.getUTCSeconds()) + step),
    minute: (step) => Date.UTC(year, month, day, first.getUTCHours(), down(first.getUTCMinutes()) + step),
    hour: (step) => Date.UTC(year, month, day, down(first.getUTCHours()) + step),
    // Weeks begin on Monday.
    day: (step) => Date.UTC(year, month, day - (count >= 7 ? (first.getUTCDay() + 6) % 7 : 0) + step),
    month: (step) => Date.UTC(year, down(month) + step),
    year: (step) => Date.UTC(down(year) + step, 0),
  }[unit];
  for (let step = 0; step <= 4 * most * count; step += count) {
    const shown = at(step), since = unwall(shown) - calendar.start;
    if (since > until) break;
    if (since >= from) marks.push([since, dateWritten(new Date(shown), unit)]);
  }
  return marks;
}

function dateWritten(shown, unit) {
  const isMidnight = shown.getTime() % 86400e3 === 0;
  if (unit === "year") return String(shown.getUTCFullYear());
  if (unit === "month") return `${MONTHS[shown.getUTCMonth()]} ${shown.getUTCFullYear()}`;
  if (unit === "day" || isMidnight) return `${shown.getUTCDate()} ${MONTHS[shown.getUTCMonth()]}`;
  return [shown.getUTCHours(), shown.getUTCMinutes(), ...(unit === "second" ? [shown.getUTCSeconds()] : [])].map(twoDigits).join(":");
}

/** A point in time: its date, if that is known, or what has passed since the start. */
function dateOf(milliseconds) {
  if (!calendar) return moment(milliseconds);
  const shown = new Date(wall(calendar.start + milliseconds));
  const clock = [shown.getUTCHours(), shown.getUTCMinutes(), shown.getUTCSeconds()].map(twoDigits).join(":");
  return `${shown.getUTCDate()} ${MONTHS[shown.getUTCMonth()]} ${shown.getUTCFullYear()}, ${clock}`;
}
