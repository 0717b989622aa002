// Quantities as people read them, in the same words as the tables.

function time(seconds) {
  const size = Math.abs(seconds);
  if (size < 120) return `${seconds.toFixed(1)} s`;
  if (size < 7200) return `${(seconds / 60).toFixed(1)} min`;
  if (size < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}

function scaled(value, unit) {
  for (const [size, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${(value / size).toFixed(2)} ${prefix}${unit}`;
  }
  return `${value.toFixed(1)} ${unit}`;
}

/** A unit for an axis that ends at this many base units: its size, and its name. */
function unitFor(most, unit) {
  for (const [size, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (most >= size) return [size, prefix + unit];
  }
  return [1, unit];
}

/** A unit of time for an axis of this many milliseconds. */
function clockFor(milliseconds) {
  if (milliseconds >= 4 * 86400e3) return [86400e3, "days"];
  if (milliseconds >= 4 * 3600e3) return [3600e3, "hours"];
  if (milliseconds >= 4 * 60e3) return [60e3, "minutes"];
  return [1e3, "seconds"];
}

/** A point in time: days, hours, minutes and seconds since the start of the workload's clock. */
function moment(milliseconds) {
  const seconds = Math.floor(milliseconds / 1000), two = (n) => String(n).padStart(2, "0");
  const clock = `${two(Math.floor(seconds / 3600) % 24)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return `day ${Math.floor(seconds / 86400)}, ${clock}`;
}

const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

function chooseAmong(select, names) {
  const before = select.value;
  select.replaceChildren(...names.map(([value, text]) => element("option", { value, textContent: text })));
  if (names.some(([value]) => String(value) === before)) select.value = before;
}
