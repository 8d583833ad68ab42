// Rows of the grid: a case, or a surface with the number of its cases by outcome, for each kernel.
const gridRow = (() => {
  // `few`: room for words instead of signs; `open`: the surface is unfolded.
  function rowOf(entry, row, few, open) {
    const made = element("div", { role: "row", class: entry.cases ? "row surface" : "row", "aria-rowindex": row + 2 });
    made.style.setProperty("--at", row);
    const cells = entry.cases ? surfaceCells(entry, few, open) : caseCells(entry, few);
    for (const [place, cell] of cells.entries()) {
      const column = place - 1;
      cell.id = `cell-${row}-${column}`;
      cell.setAttribute("aria-colindex", place + 1);
      cell.dataset.row = row;
      cell.dataset.column = column;
      made.append(cell);
    }
    return made;
  }

  function caseCells(one, few) {
    const name = element("div", { role: "rowheader", title: `${one.id}\n${one.sentence}` },
      element("code", {}, one.id), element("span", { class: "dim" }, one.sentence));
    const cells = one.letters.map((letter, column) => {
      const earlier = one.before(column);
      const description = matrix.words.get(letter) + (earlier < 0 ? "" : `, ${matrix.words.get(one.letters[earlier])} before`);
      const cell = element("div", { role: "gridcell", class: earlier < 0 ? "" : "changed", title: description,
        "aria-label": `${matrix.columns[column].label}: ${description}` });
      cell.append(mark(letter, few && matrix.judged.has(letter) ? matrix.words.get(letter) : undefined));
      return cell;
    });
    return [name, ...cells];
  }

  function surfaceCells({ surface, cases: own }, few, open) {
    const name = element("div", { role: "rowheader", "aria-expanded": open },
      element("span", { class: "arrow", "aria-hidden": true }, open ? "▾" : "▸"),
      element("strong", {}, matrix.surfaces[surface]), element("span", { class: "dim" }, String(own.length)));
    const cells = matrix.columns.map(({ label }, column) => {
      const counts = new Map();
      for (const one of own) counts.set(one.letters[column], (counts.get(one.letters[column]) || 0) + 1);
      const found = matrix.worstFirst.filter((letter) => counts.has(letter));
      const description = found.map((letter) => `${counts.get(letter)} ${matrix.words.get(letter)}`).join(", ") || "no result";
      const cell = element("div", { role: "gridcell", "aria-label": `${label}: ${description}`, title: description,
        class: own.some((one) => one.before(column) >= 0) ? "changed" : "" });
      for (const letter of few ? found : found.slice(0, 1)) cell.append(mark(letter, matrix.signs.get(letter) + counts.get(letter)));
      if (!found.length) cell.append(mark("."));
      return cell;
    });
    return [name, ...cells];
  }

  return rowOf;
})();
