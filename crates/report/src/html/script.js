"use strict";
(() => {
  const heat = document.getElementById("heat");
  const told = document.getElementById("told");
  if (!heat || !told) return;
  const rows = [...heat.tBodies[0].rows].map((row) => [...row.cells].slice(1));
  let at = [0, 0];
  const tell = (cell) => { told.textContent = cell.title; };
  const go = (row, column) => {
    const cell = rows[row]?.[column];
    if (!cell) return;
    rows[at[0]][at[1]].tabIndex = -1;
    at = [row, column];
    cell.tabIndex = 0;
    cell.focus();
    tell(cell);
  };
  rows.flat().forEach((cell) => { cell.tabIndex = -1; });
  rows[0][0].tabIndex = 0;
  told.textContent = "Point at a cell, or move through the map with the arrow keys.";
  heat.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td");
    if (cell) tell(cell);
  });
  heat.addEventListener("focusin", (event) => {
    const cell = event.target.closest("td");
    if (cell) tell(cell);
  });
  heat.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    const row = rows.findIndex((cells) => cells.includes(cell));
    if (row >= 0) go(row, rows[row].indexOf(cell));
  });
  heat.addEventListener("keydown", (event) => {
    const [row, column] = at;
    const steps = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [row, 0], End: [row, rows[row].length - 1],
    };
    const to = steps[event.key];
    if (!to) return;
    event.preventDefault();
    go(...to);
  });
})();
