// The matrix of a report.  What html.py calls the payload lies in #data:
//   columns    label and release of each kernel, oldest first
//   outcomes   letter, sign to show, word, and whether somebody has to look at it
//   absent     the same for cells without a result
//   surfaces   names; functions: sentence, documentation, conditions, numbers of findings
//   rows       surface, function, id, tier, a letter for each column; for each result
//              milliseconds and digests (one where all agree); numbers of details by column
//   details    what explains a result; its steps are numbers of lines
// Only rows in sight are elements of the page, so that thousands of cases are no trouble.
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const columns = data.columns;
  const signs = new Map([...data.outcomes, ...data.absent].map(([letter, sign]) => [letter, sign]));
  const words = new Map([...data.outcomes, ...data.absent].map(([letter, , word]) => [letter, word]));
  const outcomes = new Map(data.outcomes.map(([letter, , word]) => [letter, word]));
  const unexpected = new Set(data.outcomes.filter((each) => each[3]).map(([letter]) => letter));
  // Worst first: what a surface shows of its cases.
  const severity = ["CRASH", "FAIL", "TIMEOUT", "XPASS", "ERROR", "XFAIL", "SKIP", "PASS"];
  const worstFirst = [...outcomes.keys()].sort((one, other) => severity.indexOf(words.get(one)) - severity.indexOf(words.get(other)));
  const views = [...document.querySelectorAll(".view")].map((view) => view.id);
  const grid = $("grid"), rowsBox = $("rows"), dialog = $("evidence");
  const roomy = matchMedia("(min-width: 56rem)");
  const FOLDED_ABOVE = 200;
  const FEW_COLUMNS = 6;
  const FIRST_MISMATCHES = 2;
  const MOST_COMPARED = 1e6;
  const FILTERS = ["q", "surface", "outcome", "show"];
  const controls = { q: $("words"), surface: $("surface"), outcome: $("outcome"), show: $("show") };

  const cases = data.rows.map(([surface, func, id, tier, letters, times, digests, details]) => {
    const [sentence, docs, conditions, findings] = data.functions[func];
    return { surface, id, tier, letters, times, digests, details, sentence, docs, conditions, findings };
  });
  const byId = new Map(cases.map((one) => [one.id, one]));

  // What is in the address: the view, filters, and the cell whose evidence is open.
  let state = {};
  let folded = new Set(cases.length > FOLDED_ABOVE ? data.surfaces.keys() : []);
  // Entries of the grid: a surface and its cases, or one case.
  let shown = [];
  // Row and column of the grid; column -1 has the names.
  let active = { row: 0, column: -1 };

  // Elements

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== "") made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== undefined && child !== ""));
    return made;
  }

  const mark = (letter, text = signs.get(letter)) => element("span", { class: `mark ${classOf(letter)}` }, text);
  const classOf = (letter) => (outcomes.get(letter) || "absent").toLowerCase();

  // Cases

  const present = (one) => [...one.letters].filter((letter) => outcomes.has(letter));
  const differs = (one) => new Set(present(one)).size > 1;

  // The outcome on the nearest earlier kernel with a result, where that is another.
  function before(one, column) {
    if (!outcomes.has(one.letters[column])) return undefined;
    for (let place = column - 1; place >= 0; place--) {
      const letter = one.letters[place];
      if (outcomes.has(letter)) return letter === one.letters[column] ? undefined : letter;
    }
    return undefined;
  }

  // Of lists with an entry for each result, that of a column.
  function ofResult(one, list, column) {
    if (!Array.isArray(list)) return list;
    return list[[...one.letters.slice(0, column)].filter((letter) => outcomes.has(letter)).length];
  }

  // Filters

  function fits(one, wanted) {
    if (state.surface && data.surfaces[one.surface] !== state.surface) return false;
    if (state.outcome && ![...one.letters].some((letter) => words.get(letter) === state.outcome)) return false;
    if (state.show === "differs" && !differs(one)) return false;
    if (state.show === "unexpected" && ![...one.letters].some((letter) => unexpected.has(letter))) return false;
    if (state.show === "partly" && present(one).length === columns.length) return false;
    if (!wanted.length) return true;
    if (!one.text) one.text = `${one.id} ${one.sentence} ${one.docs}`.toLowerCase();
    return wanted.every((word) => one.text.includes(word));
  }

  const filtering = () => FILTERS.some((name) => state[name]);

  function choose() {
    const wanted = (state.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = cases.filter((one) => fits(one, wanted));
    shown = [];
    let surface;
    for (const one of chosen) {
      if (surface?.surface !== one.surface) {
        surface = { surface: one.surface, cases: [] };
        shown.push(surface);
      }
      surface.cases.push(one);
      if (!folded.has(one.surface)) shown.push(one);
    }
    rowsBox.style.setProperty("--rows", shown.length);
    grid.setAttribute("aria-rowcount", shown.length + 1);
    $("count").textContent = chosen.length === cases.length ? `${cases.length} cases` : `${chosen.length} of ${cases.length} cases`;
    $("fold").textContent = folded.size ? "unfold all" : "fold all";
    active.row = Math.max(0, Math.min(active.row, shown.length - 1));
    paint();
  }

  // The grid

  const rowHeight = () => parseFloat(getComputedStyle(grid).getPropertyValue("--row"));
  const verbose = () => columns.length <= FEW_COLUMNS && roomy.matches;

  function paint() {
    const height = rowHeight(), few = verbose();
    const first = Math.max(0, Math.floor(grid.scrollTop / height) - 10);
    const last = Math.min(shown.length, Math.ceil((grid.scrollTop + grid.clientHeight) / height) + 10);
    const painted = shown.slice(first, last).map((entry, place) => gridRow(entry, first + place, few));
    rowsBox.replaceChildren(...painted);
    if (!shown.length) rowsBox.replaceChildren(element("p", { class: "nothing" }, "No case fits."));
    const cell = activeCell();
    cell?.classList.add("active");
    if (cell) grid.setAttribute("aria-activedescendant", cell.id);
    else grid.removeAttribute("aria-activedescendant");
  }

  const activeCell = () => $(`cell-${active.row}-${active.column}`);

  function gridRow(entry, row, few) {
    const made = element("div", { role: "row", class: entry.cases ? "row surface" : "row", "aria-rowindex": row + 2 });
    made.style.setProperty("--at", row);
    const cells = entry.cases ? surfaceCells(entry, few) : caseCells(entry, few);
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
    const cells = [...one.letters].map((letter, column) => {
      const earlier = before(one, column);
      const told = words.get(letter) + (earlier ? `, ${words.get(earlier)} before` : "");
      const cell = element("div", { role: "gridcell", class: earlier ? "changed" : "", "aria-label": `${columns[column].label}: ${told}`, title: told });
      cell.append(mark(letter, few ? outcomes.get(letter) : undefined));
      return cell;
    });
    return [name, ...cells];
  }

  function surfaceCells({ surface, cases: own }, few) {
    const open = !folded.has(surface);
    const name = element("div", { role: "rowheader", "aria-expanded": open },
      element("span", { class: "arrow", "aria-hidden": true }, open ? "▾" : "▸"),
      element("strong", {}, data.surfaces[surface]), element("span", { class: "dim" }, String(own.length)));
    const cells = columns.map(({ label }, column) => {
      const counts = new Map();
      for (const one of own) counts.set(one.letters[column], (counts.get(one.letters[column]) || 0) + 1);
      const found = worstFirst.filter((letter) => counts.has(letter));
      const told = found.map((letter) => `${counts.get(letter)} ${words.get(letter)}`).join(", ") || "no result";
      const cell = element("div", { role: "gridcell", "aria-label": `${label}: ${told}`, title: told,
        class: own.some((one) => before(one, column)) ? "changed" : "" });
      for (const letter of few ? found : found.slice(0, 1)) cell.append(mark(letter, signs.get(letter) + counts.get(letter)));
      if (!found.length) cell.append(mark("."));
      return cell;
    });
    return [name, ...cells];
  }

  function reveal() {
    const height = rowHeight(), head = $("names").offsetHeight;
    const top = active.row * height, bottom = top + height + head - grid.clientHeight;
    if (grid.scrollTop > top) grid.scrollTop = top;
    else if (grid.scrollTop < bottom) grid.scrollTop = bottom;
    paint();
    const cell = activeCell();
    if (!cell || active.column < 0) return;
    const names = cell.parentElement.firstElementChild.offsetWidth;
    const left = cell.offsetLeft - names, right = cell.offsetLeft + cell.offsetWidth - grid.clientWidth;
    if (grid.scrollLeft > left) grid.scrollLeft = left;
    else if (grid.scrollLeft < right) grid.scrollLeft = right;
  }

  function move(row, column) {
    active = {
      row: Math.max(0, Math.min(row, shown.length - 1)),
      column: Math.max(-1, Math.min(column, columns.length - 1)),
    };
    reveal();
  }

  function enter() {
    const entry = shown[active.row];
    if (!entry) return;
    if (entry.cases) {
      if (!folded.delete(entry.surface)) folded.add(entry.surface);
      choose();
      reveal();
    } else {
      const column = active.column < 0 ? telling(entry) : active.column;
      go({ case: entry.id, kernel: columns[column].label });
    }
  }

  // The column that says most of a case: where something is unexpected, else the last with a result.
  function telling(one) {
    const letters = [...one.letters];
    const wrong = letters.findIndex((letter) => unexpected.has(letter));
    return wrong >= 0 ? wrong : letters.reduce((last, letter, column) => (outcomes.has(letter) ? column : last), 0);
  }

  grid.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { row, column } = active;
    const page = Math.max(1, Math.floor(grid.clientHeight / rowHeight()) - 2);
    const moves = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      PageUp: [row - page, column], PageDown: [row + page, column],
      Home: [0, column], End: [shown.length - 1, column],
    };
    if (event.key in moves) move(...moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") enter();
    else return;
    event.preventDefault();
  });
  grid.addEventListener("click", ({ target }) => {
    const cell = target.closest("[data-row]");
    if (!cell) return;
    move(Number(cell.dataset.row), Number(cell.dataset.column));
    enter();
  });
  let waiting = false;
  grid.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      paint();
    });
  });

  // Evidence

  const section = (title, ...children) => element("section", {}, element("h3", {}, title), ...children);
  const text = (content) => element("pre", {}, content);

  function evidence(one, column) {
    const letter = one.letters[column], detail = data.details[one.details[column]] || {};
    const earlier = before(one, column);
    const head = element("header", {},
      element("div", {}, mark(letter, words.get(letter)), " ", element("code", { id: "evidence-id" }, one.id)),
      element("button", { type: "button", class: "close", "aria-label": "close" }, "✕"));
    const kernels = element("nav", { "aria-label": "kernels" }, ...columns.map(({ label }, place) => {
      const made = element("a", { href: address({ ...state, kernel: label }), "aria-current": place === column ? "true" : undefined });
      made.append(mark(one.letters[place]), ` ${label}`);
      return made;
    }));
    const body = element("div", { class: "body" }, one.sentence && element("p", { class: "sentence" }, one.sentence));
    if (earlier) body.append(element("p", {}, `On the kernel before it was ${words.get(earlier)}.`));
    if (detail.reason) body.append(element("p", { class: "reason" }, detail.reason));
    if (letter === "P") body.append(element("p", {}, "Every answer was what the model allows, and what the case says."));
    if (!outcomes.has(letter)) body.append(element("p", {}, `${columns[column].label}: ${words.get(letter)}.`));
    const mismatches = (detail.mismatches || []).map(mismatch);
    body.append(...mismatches.slice(0, FIRST_MISMATCHES));
    if (mismatches.length > FIRST_MISMATCHES) {
      const more = mismatches.slice(FIRST_MISMATCHES);
      body.append(element("details", {}, element("summary", {}, `${more.length} more like it`), ...more));
    }
    const docs = detail.docs || one.docs;
    const sides = [
      detail.model && section("the model allows", text(detail.model)),
      detail.kernel && section("the kernel said", text(detail.kernel)),
      docs && section("the documentation says", element("p", {}, docs)),
    ].filter(Boolean);
    if (sides.length) body.append(element("div", { class: "sides" }, ...sides));
    if (detail.steps) body.append(section("operations performed", steps(detail)));
    if (detail.console) body.append(section("console", text(detail.console)));
    if (detail.rerun) body.append(section("run twice", element("p", {}, detail.rerun)));
    if (detail.adapted) body.append(section("judged with measured switches", element("p", {}, detail.adapted.join(", "))));
    for (const number of one.findings) body.append(finding(number));
    body.append(facts(one, column, detail));
    dialog.replaceChildren(head, kernels, body);
    head.querySelector(".close").addEventListener("click", () => dialog.close());
  }

  function steps({ steps: numbers, mismatches = [] }) {
    const wrong = new Set(mismatches.map((each) => each.step));
    const list = element("ol", { class: "steps" });
    for (const number of numbers) {
      const line = data.lines[number];
      const bad = wrong.has(parseInt(line, 10));
      list.append(element("li", { class: bad ? "wrong" : "" }, bad ? "▶ " : "", line));
    }
    return list;
  }

  function mismatch({ step, field, allowed, observed }) {
    const place = step ? `step ${step}, ${field}` : `the case as a whole, ${field}`;
    if (!allowed.trim().includes("\n") && !observed.trim().includes("\n")) {
      return section(place, element("dl", { class: "pair" },
        element("dt", {}, "allowed"), element("dd", {}, element("code", {}, allowed)),
        element("dt", {}, "observed"), element("dd", {}, element("code", {}, observed))));
    }
    const lines = difference(allowed.split("\n"), observed.split("\n"));
    return section(`${place}  (− allowed, + observed)`, element("pre", {}, ...lines.map(([sign, line]) =>
      element("span", { class: { "-": "removed", "+": "added" }[sign] }, `${sign} ${line}\n`))));
  }

  // Lines of two texts: common ones with " ", others with "-" or "+" (longest common subsequence).
  function difference(old, now) {
    let begin = 0, end = 0;
    const shorter = Math.min(old.length, now.length);
    while (begin < shorter && old[begin] === now[begin]) begin++;
    while (end < shorter - begin && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
    const common = (lines) => lines.map((line) => [" ", line]);
    const inner = [old.slice(begin, old.length - end), now.slice(begin, now.length - end)];
    return [...common(old.slice(0, begin)), ...between(...inner), ...common(old.slice(old.length - end))];
  }

  function between(old, now) {
    if (old.length * now.length > MOST_COMPARED) return [...old.map((line) => ["-", line]), ...now.map((line) => ["+", line])];
    const length = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
    for (let i = old.length - 1; i >= 0; i--) {
      for (let j = now.length - 1; j >= 0; j--) {
        length[i][j] = old[i] === now[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
      }
    }
    const lines = [];
    let i = 0, j = 0;
    while (i < old.length || j < now.length) {
      if (i < old.length && j < now.length && old[i] === now[j]) lines.push([" ", old[i++], j++]);
      else if (j >= now.length || (i < old.length && length[i + 1][j] >= length[i][j + 1])) lines.push(["-", old[i++]]);
      else lines.push(["+", now[j++]]);
    }
    return lines;
  }

  function finding(number) {
    const source = $(`finding-${number}`);
    const copy = source.cloneNode(true);
    copy.removeAttribute("id");
    copy.open = false;
    return section("finding", copy);
  }

  function facts(one, column, detail) {
    const seconds = ofResult(one, one.times, column);
    const rows = [
      ["holds for", one.conditions],
      ["tier", one.tier],
      ["took", seconds === undefined ? "" : `${(seconds / 1000).toFixed(3)} s`],
      ["blame", detail.blame],
      ["digest", outcomes.has(one.letters[column]) ? ofResult(one, one.digests, column) : ""],
      ["run it", `uevt run … -k ${one.id}${one.tier === "full" ? " --tier full" : ""}`],
    ].filter(([, value]) => value);
    return element("dl", { class: "pair about" }, ...rows.flatMap(([name, value]) =>
      [element("dt", {}, name), element("dd", {}, element("code", {}, value))]));
  }

  dialog.addEventListener("close", () => {
    if (state.case) go({ case: undefined, kernel: undefined }, true);
    if (state.view === "cases") grid.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const column = columns.findIndex(({ label }) => label === state.kernel) + step;
    if (!step || !columns[column]) return;
    event.preventDefault();
    go({ kernel: columns[column].label }, true);
  });

  // The address

  function address(wanted) {
    const entries = ["view", ...FILTERS, "case", "kernel"].filter((name) => wanted[name]).map((name) => [name, wanted[name]]);
    return `#${new URLSearchParams(entries)}`;
  }

  function go(changes, replace = false) {
    const hash = address({ ...state, ...changes });
    history[replace ? "replaceState" : "pushState"](null, "", hash === "#" ? location.pathname + location.search : hash);
    read();
  }

  function read() {
    const anchor = /^#finding-\d+$/.test(location.hash) && $(location.hash.slice(1));
    const wanted = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    if (anchor) wanted.view = "findings";
    if (wanted.case && !wanted.view) wanted.view = state.view || "cases";
    if (!views.includes(wanted.view)) wanted.view = FILTERS.some((name) => wanted[name]) ? "cases" : "overview";
    const filtered = FILTERS.some((name) => (wanted[name] || "") !== (state[name] || ""));
    const entered = wanted.view !== state.view;
    state = wanted;
    for (const [name, control] of Object.entries(controls)) {
      if (control.value !== (state[name] || "")) control.value = state[name] || "";
    }
    if (entered) showView();
    if (filtered) {
      // What was asked for is to be seen.
      folded = new Set(filtering() || cases.length <= FOLDED_ABOVE ? [] : data.surfaces.keys());
      grid.scrollTop = 0;
      active = { row: 0, column: -1 };
    }
    if (filtered || entered) choose();
    if (anchor) {
      anchor.open = true;
      anchor.scrollIntoView();
    }
    showEvidence();
  }

  function showView() {
    for (const view of views) $(view).hidden = view !== state.view;
    for (const link of document.querySelectorAll("body > header nav a")) {
      if (link.hash === `#view=${state.view}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  function showEvidence() {
    const one = byId.get(state.case);
    if (!one) {
      if (dialog.open) dialog.close();
      return;
    }
    const named = columns.findIndex(({ label }) => label === state.kernel);
    const column = named < 0 ? telling(one) : named;
    state.kernel = columns[column].label;
    evidence(one, column);
    if (!dialog.open) dialog.showModal();
    dialog.focus();
    dialog.scrollTop = 0;
    if (state.view === "cases") {
      if (folded.delete(one.surface)) choose();
      const row = shown.indexOf(one);
      if (row >= 0) move(row, column);
    }
  }

  addEventListener("hashchange", read);
  addEventListener("popstate", read);

  // Controls

  for (const [name, control] of Object.entries(controls)) {
    control.addEventListener("input", () => go({ [name]: control.value, view: "cases" }, true));
  }
  controls.q.form.addEventListener("submit", (event) => event.preventDefault());
  controls.q.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      grid.focus();
    } else if (event.key === "Escape" && !controls.q.value) {
      grid.focus();
    }
  });
  $("fold").addEventListener("click", () => {
    folded = new Set(folded.size ? [] : data.surfaces.keys());
    choose();
  });
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key !== "/" || typing || dialog.open || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (state.view !== "cases") go({ view: "cases" });
    controls.q.focus();
  });
  addEventListener("resize", paint);
  roomy.addEventListener("change", paint);

  // Once

  function options(select, first, values) {
    select.append(element("option", { value: "" }, first), ...values.map((value) => element("option", { value }, value)));
    select.firstChild.value = "";
  }

  const seen = new Set(cases.flatMap((one) => [...one.letters]));
  options(controls.surface, "every surface", data.surfaces);
  options(controls.outcome, "every outcome", [...words].filter(([letter]) => seen.has(letter)).map(([, word]) => word));
  grid.style.setProperty("--columns", columns.length);
  grid.classList.toggle("many", columns.length > FEW_COLUMNS);
  grid.setAttribute("aria-colcount", columns.length + 1);
  $("names").append(element("div", { role: "columnheader" }, "case"), ...columns.map(({ label, release }) =>
    element("div", { role: "columnheader", title: `${label} (${release})` }, element("strong", {}, label), element("span", { class: "dim" }, release))));
  $("legend").append(...[...words].filter(([letter]) => seen.has(letter)).map(([letter, word]) =>
    element("span", {}, mark(letter), ` ${word}`)), element("span", {}, element("span", { class: "changed swatch" }), " another outcome than on the kernel before"));
  document.body.classList.add("scripted");
  read();
})();
