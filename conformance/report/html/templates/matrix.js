// The matrix of a report, from the payload of html.py in #data:
//   columns    label, release and command of each kernel, oldest first
//   outcomes   letter, sign, word, and whether it is an error or a deviation
//   absent     letter, sign and word of cells without a result
//   surfaces   names
//   functions  sentence, documentation, conditions, numbers of findings, level
//   rows       surface, function, id, tier, a letter for each column; for each result
//              milliseconds and digests (one where all agree); numbers of details by column
//   details    what explains a result; its steps are numbers of lines
const matrix = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const known = [...data.outcomes, ...data.absent];
  const signs = new Map(known.map(([letter, sign]) => [letter, sign]));
  const words = new Map(known.map(([letter, , word]) => [letter, word]));
  const judged = new Set(data.outcomes.map(([letter]) => letter));
  const trouble = new Set(data.outcomes.filter((each) => each[3]).map(([letter]) => letter));
  // The order of outcomes in a folded surface.
  const severity = [
    "CRASH", "FAIL", "TIMEOUT", "ERROR", "CHANGED", "NOTE", "XFAIL", "FIXED", "SKIP", "PASS",
  ];
  const place = (letter) => severity.indexOf(words.get(letter));
  const worstFirst = [...judged].sort((one, other) => place(one) - place(other));

  class Case {
    constructor([surface, func, id, tier, letters, times, digests, details]) {
      Object.assign(this, { surface, id, tier, letters: [...letters], times, digests, details });
      [this.sentence, this.docs, this.conditions, this.findings, this.level] = data.functions[func];
    }

    get present() {
      return this.letters.filter((letter) => judged.has(letter));
    }

    // Whether outcomes differ between kernels.
    get differs() {
      return new Set(this.present).size > 1;
    }

    // The text to search.
    get text() {
      if (!this.searched) this.searched = `${this.id} ${this.sentence} ${this.docs}`.toLowerCase();
      return this.searched;
    }

    // The column of the nearest earlier kernel with a result, if that differs; else -1.
    before(column) {
      if (!judged.has(this.letters[column])) return -1;
      let earlier = column - 1;
      while (earlier >= 0 && !judged.has(this.letters[earlier])) earlier--;
      return this.letters[earlier] === this.letters[column] ? -1 : earlier;
    }

    // The column to open: the first with a deviation, else the last with a result.
    get telling() {
      const wrong = this.letters.findIndex((letter) => trouble.has(letter));
      if (wrong >= 0) return wrong;
      return this.letters.reduce((last, letter, column) => (judged.has(letter) ? column : last), 0);
    }

    detail(column) {
      return data.details[this.details[column]] || {};
    }

    seconds(column) {
      return this.ofResult(this.times, column) / 1000;
    }

    digest(column) {
      return typeof this.digests === "string" ? this.digests : this.ofResult(this.digests, column);
    }

    // The entry of a column in a list with one entry for each result.
    ofResult(list, column) {
      return list[this.letters.slice(0, column).filter((letter) => judged.has(letter)).length];
    }
  }

  const cases = data.rows.map((row) => new Case(row));
  const byId = new Map(cases.map((one) => [one.id, one]));

  // The case of an id, or the first variant of the function that the id is of.
  function find(id) {
    return byId.get(id) || cases.find((one) => one.id.startsWith(`${id}.`));
  }

  return {
    columns: data.columns, surfaces: data.surfaces, lines: data.lines, cases, find,
    letters: known.map(([letter]) => letter), signs, words, judged, trouble, worstFirst,
  };
})();

// An element of the page.  Strings become text nodes, never markup.
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== "") made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== ""));
  return made;
}

// An outcome as a coloured sign or word.
function mark(letter, text = matrix.signs.get(letter)) {
  const kind = matrix.judged.has(letter) ? matrix.words.get(letter).toLowerCase() : "absent";
  return element("span", { class: `mark ${kind}` }, text);
}
