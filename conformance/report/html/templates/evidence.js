// The content of the dialog: what explains the result of a case on a kernel.
const evidence = (() => {
  // Ends of the ids of results that are about a case; results of modules are about none.
  const ABOUT_A_CASE = /(\.probe)?(\.(leftover|enablers|afterwards))?$/, MODULES = "module.";

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
    const body = element("div", { class: "body" },
      paragraph("sentence", one.sentence),
      paragraph("", summary(one, column)),
      paragraph("reason", detail.reason),
      detail.difference && section("what differs", listing(detail.difference)),
      detail.listing && section("program, paths below /sys/kernel/tracing", listing(detail.listing)),
      detail.steps && element("details", {}, element("summary", {}, "all steps"), listing(detail.steps)),
      detail.program && element("details", {},
        element("summary", {}, "a C program of its own (uevt repro)"), text(detail.program)),
      documented(one, detail),
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

  // Lines of the terminal's form: what the kernel answered, and steps that differ, are coloured.
  function listing(numbers) {
    const kinds = [[/^ +(kernel  |-)/, "removed"], [/^ +\+/, "added"], [/^  > /, "wrong"]];
    return element("pre", {}, ...numbers.map((number) => {
      const line = matrix.lines[number];
      const [, kind] = kinds.find(([pattern]) => pattern.test(line)) || [];
      return element("span", { class: kind }, `${line}\n`);
    }));
  }

  function documented(one, detail) {
    const docs = detail.docs || one.docs;
    return docs && section("documentation", paragraph("", docs));
  }

  function finding(number) {
    const copy = document.getElementById(`finding-${number}`).cloneNode(true);
    copy.removeAttribute("id");
    copy.open = false;
    return copy;
  }

  function facts(one, column, detail) {
    const judged = matrix.judged.has(one.letters[column]);
    const command = `${matrix.columns[column].command}${one.tier === "full" ? " --tier full" : ""}`;
    return pairs("pair about", [
      ["holds for", one.conditions],
      ["level", one.level],
      ["known bug", detail.bug],
      ["tier", one.tier],
      ["took", judged && `${one.seconds(column).toFixed(3)} s`],
      ["blame", detail.blame],
      ["digest", judged && one.digest(column)],
      ["source", detail.source],
      ["run it", !one.id.startsWith(MODULES) && `${command} -k ${one.id.replace(ABOUT_A_CASE, "")}`],
    ]);
  }

  function pairs(kind, rows) {
    return element("dl", { class: kind }, ...rows.filter(([, value]) => value).flatMap(([name, value]) =>
      [element("dt", {}, name), element("dd", {}, element("code", {}, value))]));
  }

  return { content };
})();
