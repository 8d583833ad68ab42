// The content of the dialog: what explains the result of a case on a kernel.
const evidence = (() => {
  const FIRST_MISMATCHES = 2;
  const MOST_COMPARED = 1e6;

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

  function mismatch({ step, field, allowed, observed }) {
    const place = step ? `step ${step}, ${field}` : `the case as a whole, ${field}`;
    if (!allowed.trim().includes("\n") && !observed.trim().includes("\n")) {
      return section(place, pairs("pair", [["allowed", allowed], ["observed", observed]]));
    }
    const lines = difference(allowed.split("\n"), observed.split("\n"));
    return section(`${place}  (− allowed, + observed)`, element("pre", {}, ...lines.map(([sign, line]) =>
      element("span", { class: { "-": "removed", "+": "added" }[sign] }, `${sign} ${line}\n`))));
  }

  // Lines of two texts: common ones with " ", others with "-" or "+".
  function difference(old, now) {
    let begin = 0, end = 0;
    const shorter = Math.min(old.length, now.length);
    while (begin < shorter && old[begin] === now[begin]) begin++;
    while (end < shorter - begin && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
    const common = (lines) => lines.map((line) => [" ", line]);
    const inner = between(old.slice(begin, old.length - end), now.slice(begin, now.length - end));
    return [...common(old.slice(0, begin)), ...inner, ...common(old.slice(old.length - end))];
  }

  // The same by their longest common subsequence, or as a whole where that would take too long.
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
    const copy = document.getElementById(`finding-${number}`).cloneNode(true);
    copy.removeAttribute("id");
    copy.open = false;
    return copy;
  }

  function facts(one, column, detail) {
    const judged = matrix.judged.has(one.letters[column]);
    return pairs("pair about", [
      ["holds for", one.conditions],
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
