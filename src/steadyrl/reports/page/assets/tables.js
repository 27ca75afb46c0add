// Tables whose headings sort them, and the filter of the table of runs.

function keyOf(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const text = cell.textContent.trim();
  const value = Number(text.replace(/,/g, "").split(" ")[0]);
  return text !== "" && Number.isFinite(value) ? value : text;
}

/** Numbers before text, and empty cells last in either direction. */
function compare(a, b, sign) {
  if (a === "" || b === "") return (a === "") - (b === "");
  if (typeof a !== typeof b) return sign * (typeof a === "number" ? -1 : 1);
  return sign * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
}

function sortTable(table, column, direction) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows).map((row) => [keyOf(row, column), row]);
  rows.sort((a, b) => compare(a[0], b[0], direction === "ascending" ? 1 : -1));
  body.append(...rows.map(([, row]) => row));
  Array.from(table.tHead.rows[0].cells).forEach((heading, index) => {
    heading.setAttribute("aria-sort", index === column ? direction : "none");
  });
}

function makeSortable(table, remember) {
  Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
    const button = node("button", { type: "button" }, Array.from(heading.childNodes));
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const direction = heading.getAttribute("aria-sort") === "descending" ? "ascending"
        : heading.getAttribute("aria-sort") === "ascending" ? "descending"
        : heading.classList.contains("number") ? "descending" : "ascending";
      sortTable(table, column, direction);
      remember(column, direction);
    });
  });
}

/** Shows the rows that have all words of one of the parts between commas. */
function filterRows(text) {
  const table = document.querySelector("table.filtered");
  const parts = text.toLowerCase().split(",").map((part) => part.split(/\s+/).filter(Boolean)).filter((part) => part.length);
  const headings = Array.from(table.tHead.rows[0].cells).map((heading) => heading.textContent);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    // Numbers are found by their headings too: "seed 3".
    const cells = Array.from(row.cells).map((cell, index) => `${headings[index]} ${cell.textContent}`);
    const words = cells.join(" ").toLowerCase().split(/[\s,]+/);
    const has = (part) => part.every((word, index) => {
      const before = part[index - 1];
      return headings.includes(before) && words.some((one, i) => one === before && words[i + 1] === word)
        || !headings.includes(before) && words.some((one) => one.includes(word));
    });
    row.hidden = parts.length > 0 && !parts.some(has);
    shown += !row.hidden;
  }
  const all = table.tBodies[0].rows.length;
  const runs = all === 1 ? "1 run" : `${all} runs`;
  document.getElementById("matching").textContent = parts.length ? `${shown} of ${runs}` : runs;
}
