// Sorts the tables of results by a column. Cells keep their content; only rows move. Missing values stay last.
"use strict";

function compare(one, other, descending) {
  if (one === "" || other === "") return (one === "") - (other === "");
  const isNumber = !Number.isNaN(Number(one)) && !Number.isNaN(Number(other));
  const order = isNumber ? Number(one) - Number(other) : one.localeCompare(other);
  return descending ? -order : order;
}

for (const table of document.querySelectorAll("table.results")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, place) => {
    heading.querySelector("button")?.addEventListener("click", () => {
      const descending = heading.ariaSort === "none" ? heading.classList.contains("n") : heading.ariaSort === "ascending";
      for (const other of headings) if (other.ariaSort) other.ariaSort = "none";
      heading.ariaSort = descending ? "descending" : "ascending";
      const rows = [...table.tBodies[0].rows];
      const value = (row) => row.cells[place].dataset.value ?? "";
      table.tBodies[0].append(...rows.sort((one, other) => compare(value(one), value(other), descending)));
    });
  });
}
