// The ranking in another order: a click on a heading sorts by it, another one turns the order round.

function watchHeadings(table) {
  const [head] = table.tHead.rows, [body] = table.tBodies;
  Array.from(head.cells).forEach((heading, place) => {
    const button = element("button", { type: "button", className: "heading", textContent: heading.textContent });
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const turned = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of head.cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", turned > 0 ? "ascending" : "descending");
      const value = (row) => row.cells[place]?.dataset.value ?? row.cells[place]?.textContent ?? "";
      const compare = (a, b) => turned * value(a).localeCompare(value(b), "en", { numeric: true });
      const byNumber = (a, b) => turned * (Number(value(a)) - Number(value(b)));
      const rows = Array.from(body.rows), isNumber = rows.every((row) => row.cells[place].dataset.value);
      body.replaceChildren(...rows.sort(isNumber ? byNumber : compare));
    });
  });
}
