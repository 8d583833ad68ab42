// The report: views, filters, the grid and the address.  Only visible rows of the grid are elements
// of the page, so that it stays fast with thousands of cases.
(() => {
  const $ = (id) => document.getElementById(id);
  const { columns, cases } = matrix;
  const views = [...document.querySelectorAll(".view")].map((view) => view.id);
  const grid = $("grid"), rowsBox = $("rows"), dialog = $("evidence");
  const roomy = matchMedia("(min-width: 56rem)");
  const FOLDED_ABOVE = 200;
  const FEW_COLUMNS = 6;
  const FILTERS = ["q", "surface", "outcome", "show"];
  const controls = { q: $("words"), surface: $("surface"), outcome: $("outcome"), show: $("show") };

  // The contents of the address: the view, filters, and the cell whose evidence is open.
  let state = {};
  let folded = new Set(cases.length > FOLDED_ABOVE ? matrix.surfaces.keys() : []);
  // Entries of the grid: a surface and its cases, or one case.
  let shown = [];
  // Row and column of the grid; column -1 has the names.
  let active = { row: 0, column: -1 };

  // Filters

  function fits(one, wanted) {
    if (state.surface && matrix.surfaces[one.surface] !== state.surface) return false;
    if (state.outcome && !one.letters.some((letter) => matrix.words.get(letter) === state.outcome)) return false;
    if (state.show === "differs" && !one.differs) return false;
    if (state.show === "unexpected" && !one.letters.some((letter) => matrix.trouble.has(letter))) return false;
    if (state.show === "partly" && one.present.length === columns.length) return false;
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
    const painted = shown.slice(first, last).map((entry, place) => gridRow(entry, first + place, few, !folded.has(entry.surface)));
    rowsBox.replaceChildren(...painted);
    if (!shown.length) rowsBox.replaceChildren(element("p", { class: "nothing" }, "No case matches."));
    const cell = activeCell();
    cell?.classList.add("active");
    if (cell) grid.setAttribute("aria-activedescendant", cell.id);
    else grid.removeAttribute("aria-activedescendant");
  }

  const activeCell = () => $(`cell-${active.row}-${active.column}`);

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
      const column = active.column < 0 ? entry.telling : active.column;
      go({ case: entry.id, kernel: columns[column].label });
    }
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
      // Unfold the matches.
      folded = new Set(filtering() || cases.length <= FOLDED_ABOVE ? [] : matrix.surfaces.keys());
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
    const one = state.case && matrix.find(state.case);
    if (!one) {
      if (dialog.open) dialog.close();
      return;
    }
    const named = columns.findIndex(({ label }) => label === state.kernel);
    const column = named < 0 ? one.telling : named;
    state.kernel = columns[column].label;
    dialog.replaceChildren(...evidence.content(one, column, (kernel) => address({ ...state, kernel })));
    dialog.querySelector(".close").addEventListener("click", () => dialog.close());
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
    folded = new Set(folded.size ? [] : matrix.surfaces.keys());
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

  const seen = new Set(cases.flatMap((one) => one.letters));
  const used = matrix.letters.filter((letter) => seen.has(letter));
  options(controls.surface, "every surface", matrix.surfaces);
  options(controls.outcome, "every outcome", used.map((letter) => matrix.words.get(letter)));
  grid.style.setProperty("--columns", columns.length);
  grid.classList.toggle("many", columns.length > FEW_COLUMNS);
  grid.setAttribute("aria-colcount", columns.length + 1);
  $("names").append(element("div", { role: "columnheader" }, "case"), ...columns.map(({ label, release }) =>
    element("div", { role: "columnheader", title: `${label} (${release})` }, element("strong", {}, label), element("span", { class: "dim" }, release === label ? "" : release))));
  $("legend").append(...used.map((letter) => element("span", {}, mark(letter), ` ${matrix.words.get(letter)}`)),
    element("span", {}, element("span", { class: "changed swatch" }), " outcome differs from the previous kernel"));
  document.body.classList.add("scripted");
  read();
})();
