// Tables and texts that are brought up to date in place, so that focus, selection and scrolling stay.

function setText(id, text) {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text;
}

/** Brings the rows of a table up to date: a row of each item that was made once and is filled again. */
function keepRows(body, items, key, make, fill) {
  const known = new Map(Array.from(body.children, (row) => [row.dataset.key, row]));
  let place = body.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let row = known.get(name);
    known.delete(name);
    if (!row) {
      row = make(item);
      row.dataset.key = name;
    }
    fill(row, item);
    if (row === place) place = place.nextElementSibling;
    else body.insertBefore(row, place);
  }
  for (const row of known.values()) row.remove();
}

/** A row with a heading and cells; classes for each of them. */
function emptyRow(classes) {
  const heading = element("th", { scope: "row", className: classes[0] });
  return element("tr", {}, heading, ...classes.slice(1).map((className) => element("td", { className })));
}

/** Sets the text of a cell if it is another one. */
function fillCell(cell, text) {
  if (cell.textContent !== text) cell.textContent = text;
}
