// The content of the dialog: what explains the result of a case on a kernel.
const evidence = (() => {
  const FIRST_MISMATCHES = 2;

  const section = (title, ...children) => element("section", {}, element("h3", {}, title), ...children);
  const text = (content) => element("pre", {}, content);
  const paragraph = (kind, content) => content && element("p", { class: kind }, content);

  // `address` gives the address of the same case on a kernel.
  function content(one, column, address) {
    const letter = one.letters[column], detail = one.detail(column);
    const head = element("header", {},
      element("div", {}, mark(letter, matrix.words.get(letter)), " ", element("code", { id: "evidence-id" }, one.id)),
      element("button", { type: "button", class: "close", "aria-label": "close" }, "✕"));
    const kernels = element("nav", { "aria-label": "kernels" }, ...matrix.columns.map(({ label }, place) =>
      element("a", { href: address(label), "aria-current": place === column ? "true" : undefined },
        mark(one.letters[place]), ` ${label}`)));
    const mismatches = (detail.mismatches || []).map(mismatch);
    const more = mismatches.splice(FIRST_MISMATCHES);
    const body = element("div", { class: "body" },
      paragraph("sentence", one.sentence),
      paragraph("", summary(one, column)),
      paragraph("reason", detail.reason),
      ...mismatches,
      more.length ? element("details", {}, element("summary", {}, `${more.length} more`), ...more) : "",
      sides(one, detail),
      detail.steps && section("steps", steps(detail)),
      detail.program && element("details", {},
        element("summary", {}, "a C program of its own (uevt repro)"), text(detail.program)),
      detail.console && section("console", text(detail.console)),
      detail.rerun && section("run twice", paragraph("", detail.rerun)),
      detail.adapted && section("judged with measured switches", paragraph("", detail.adapted.join(", "))),
      ...one.findings.map((number) => section("finding", finding(number))),
      facts(one, column, detail));
    return [head, kernels, body];
  }

  function summary(one, column) {
    const letter = one.letters[column], earlier = one.before(column);
    const lines = [];
    if (!matrix.judged.has(letter)) lines.push(`${matrix.columns[column].label}: ${matrix.words.get(letter)}.`);
    if (letter === "P") lines.push("Every answer was allowed by the model and by the case.");
    if (earlier >= 0) lines.push(`On ${matrix.columns[earlier].label} it was ${matrix.words.get(one.letters[earlier])}.`);
    return lines.join(" ");
  }

  function sides(one, detail) {
    const docs = detail.docs || one.docs;
    return element("div", { class: "sides" },
      detail.model && section("the model allows", text(detail.model)),
      detail.kernel && section("the kernel returned", text(detail.kernel)),
      docs && section("documentation", paragraph("", docs)));
  }

  function steps({ steps: numbers, mismatches = [] }) {
    const wrong = new Set(mismatches.map((each) => each.step));
    return element("ol", { class: "steps" }, ...numbers.map((number) => {
      const line = matrix.lines[number];
      const bad = wrong.has(parseInt(line, 10));
      return element("li", { class: bad ? "wrong" : "" }, bad ? "▶ " : "", line);
    }));
  }

  function mismatch({ step, field, allowed, observed, lines }) {
    const place = step ? `step ${step}, ${field}` : `the case as a whole, ${field}`;
    if (!lines) return section(place, pairs("pair", [["allowed", allowed], ["observed", observed]]));
    return section(`${place}  (− allowed, + observed)`, element("pre", {}, ...lines.map((line) =>
      element("span", { class: { "-": "removed", "+": "added" }[line[0]] }, `${line[0]} ${line.slice(1)}\n`))));
  }

  function finding(number) {
    const copy = document.getElementById(`finding-${number}`).cloneNode(true);
    copy.removeAttribute("id");
    copy.open = false;
    return copy;
  }

  function facts(one, column, detail) {
    const judged = matrix.judged.has(one.letters[column]);
    return pairs("pair about", [
      ["holds for", one.conditions],
      ["level", one.level],
      ["known bug", detail.bug],
      ["tier", one.tier],
      ["took", judged && `${one.seconds(column).toFixed(3)} s`],
      ["blame", detail.blame],
      ["digest", judged && one.digest(column)],
      ["source", detail.source],
      ["run it", `uevt run … -k ${one.id}${one.tier === "full" ? " --tier full" : ""}`],
    ]);
  }

  function pairs(kind, rows) {
    return element("dl", { class: kind }, ...rows.filter(([, value]) => value).flatMap(([name, value]) =>
      [element("dt", {}, name), element("dd", {}, element("code", {}, value))]));
  }

  return { content };
})();
