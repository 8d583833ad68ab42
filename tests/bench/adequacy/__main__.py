"""`python -m tests.bench.adequacy`: is each rule of the model tested by a real kernel?

The operations and answers of all cases are recorded on some kernels.  Each mutant of the model, and
each dated switch flipped, must contradict a recorded answer; if a program of the changed model
strays from what was recorded, its cases run on the kernel itself.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import io
import json
import pickle
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import coverage

from conformance.abi.switches import SWITCHES
from tests.bench.adequacy import recording
from tests.bench.adequacy.mutants import Mutant, mutants, mutated
from tests.bench.adequacy.recording import Recordings
from tests.bench.adequacy.replay import Noticed
from tests.bench.guests import ROOT

KERNELS = ("6.12", "6.1", "7.3", "6.1-byte-status", "6.1-bpf-iter", "6.1-two-pages")
MODEL = "conformance/model"
RULES = f"{MODEL}/user_events"
# abi/profile.py reads what users write, and its tables are the switches.
FILES = (*(f"conformance/abi/{name}.py" for name in ("bpf", "grammar", "perf", "uapi")), f"{RULES}/*.py")
WITHOUT_EFFECT = Path(__file__).with_name("without_effect.toml")
# What is imported anew where the model is changed.
_CHANGED = ("conformance", "tests.bench.adequacy.re")
# Cases of a mutant that strays which run on a kernel.
_MOST_LIVE = 8

Case = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """A mutant of a file, or a switch that is flipped on a kernel, and the cases to try."""

    file: str
    mutant: Mutant | None
    cases: Sequence[Case]
    switch: str = ""

    def __str__(self) -> str:
        if self.mutant is None:
            return f"{self.file}: {self.switch}"
        where = f"{self.file}:{self.mutant.lines.start} {self.mutant.function}"
        return f"{where.rstrip()} {self.mutant.text}"


@dataclass(frozen=True, slots=True)
class Row:
    """How a change was noticed ("" if not), and where."""

    change: Change
    how: str
    where: str
    tried: int
    strayed: int
    seconds: float

    def line(self) -> str:
        """A line of JSON."""
        numbers = {"tried": self.tried, "strayed": self.strayed, "seconds": self.seconds}
        return json.dumps({"change": str(self.change), "how": self.how, "where": self.where, **numbers}) + "\n"


class Importer:
    """Imports the file of a change with its mutant."""

    def __init__(self, change: Change) -> None:
        assert change.mutant is not None
        self._file = ROOT / change.file
        self._name = change.file.removesuffix(".py").replace("/", ".")
        self._tree: ast.Module = mutated(self._file.read_text(), change.mutant.number)

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """The changed module; None for any other."""
        if name != self._name:
            return None
        return spec_from_file_location(name, self._file, loader=self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Not special."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute the changed source."""
        exec(compile(self._tree, str(self._file), "exec"), module.__dict__)


def _imported(name: str, change: Change | None = None) -> ModuleType:
    """A module of this package, with everything that it imports, imported anew."""
    for each in [each for each in sys.modules if each.startswith(_CHANGED)]:
        del sys.modules[each]
    if change is not None and change.mutant is not None:
        sys.meta_path.insert(0, Importer(change))
    return importlib.import_module(f"tests.bench.adequacy.{name}")


def _replay(recordings: Mapping[str, Any], change: Change) -> tuple[Change, Noticed, float]:
    began = time.process_time()
    try:
        module = _imported("replay", change)
    except Exception as error:
        found = Noticed(type(error).__name__)
    else:
        found = module.noticed(recordings, change.cases, change.switch)
    return change, found, time.process_time() - began


def _live(change: Change, strayed: Sequence[Case]) -> str:
    """The first case that strays and does not pass on its kernel, "" for none."""
    module = _imported("recording", change)
    for kernel in dict.fromkeys(kernel for kernel, _ in strayed):
        chosen = [case for other, case in strayed if other == kernel][:_MOST_LIVE]
        with tempfile.TemporaryDirectory() as directory:
            result = module.fails_on(kernel, chosen, change.switch, Path(directory) / "guest")
        if result is not None:
            return f"{kernel} on {result.id}: {result.reason}"
    return ""


def _survey(recordings: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any], str]:
    """See ``replay.survey``; by file and line, the cases that reach it; the coverage as text."""
    measured = coverage.Coverage(data_file=None, branch=True, include=[f"{ROOT}/conformance/*"])
    measured.start()
    asked, wrong = _imported("replay").survey(recordings, measured.switch_context)
    measured.stop()
    data = measured.get_data()
    lines = {
        str(Path(file).relative_to(ROOT)): data.contexts_by_lineno(file)
        for file in data.measured_files()
        if _is_chosen(file)
    }
    text = io.StringIO()
    for part, options in ((RULES, {"show_missing": True}), (MODEL, {"skip_covered": True})):
        measured.report(include=[f"{ROOT}/{part}/*"], file=text, **options)
    return asked, wrong, lines, text.getvalue()


def _is_chosen(file: str | Path) -> bool:
    return any(fnmatch(str(file), f"*{pattern}") for pattern in FILES)


def _spread(cases: Iterable[Case]) -> list[Case]:
    """One variant of every case first, then the second ones."""
    seen = Counter[Case]()
    keys = {}
    for kernel, case in cases:
        group = kernel, ".".join(case.split(".")[:2])
        seen[group] += 1
        keys[kernel, case] = seen[group], KERNELS.index(kernel)
    return sorted(keys, key=keys.__getitem__)


def _mutants(lines: Mapping[str, Mapping[int, list[str]]], every: Sequence[Case]) -> list[Change]:
    """The mutants of all files; one at import concerns all cases, others those that reach it."""
    found = []
    for file in sorted(path for pattern in FILES for path in ROOT.glob(pattern)):
        name = str(file.relative_to(ROOT))
        for mutant in mutants(file.read_text()):
            reached = {each for line in mutant.lines for each in lines[name].get(line, [])}
            cases = [(each.split()[0], each.split()[1]) for each in sorted(reached - {""})]
            found.append(Change(name, mutant, _spread(cases if mutant.function else every)))
    return found


def _flips(asked: Mapping[Case, frozenset[str]]) -> list[Change]:
    """Each switch that cases ask for, flipped on each kernel."""
    found = []
    for kernel, switch in product(KERNELS, (each.name for each in SWITCHES)):
        cases = [case for case, names in asked.items() if switch in names and case[0] == kernel]
        found.append(Change(kernel, None, _spread(cases), switch))
    return found


def _judged(context: Any, jobs: int, recordings: Any, changes: Sequence[Change]) -> Iterator[Row]:
    """By recorded answers; where a program strayed and nothing else was noticed, on the kernel."""
    with context.Pool(jobs, maxtasksperchild=1) as pool:
        for change, found, seconds in pool.imap(partial(_replay, recordings), changes, 1):
            how, where = found.how, " on ".join(reversed(found.where)) if found.how else ""
            if not how and found.strayed:
                where = pool.apply(_live, (change, found.strayed))
                how = "live" if where else ""
            yield Row(change, how, where, found.tried, len(found.strayed), round(seconds, 2))


def main() -> int:
    """Print the table; 1 if a change is neither noticed nor known to be without effect."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.adequacy")
    parser.add_argument("--out", type=Path, default=ROOT / "build/adequacy")
    parser.add_argument("--recorded", action="store_true", help="use the answers of the last run")
    parser.add_argument("--only", default="", help="only mutants and switches with this text")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    recordings = {kernel: _recordings(kernel, options.out, options.recorded) for kernel in KERNELS}
    context = get_context("fork")
    with context.Pool(1, maxtasksperchild=1) as pool:
        asked, wrong, lines, covered = pool.apply(_survey, (recordings,))
    for kernel, each in recordings.items():
        bad = wrong.get(kernel, [])
        sys.stdout.write(f"{kernel}: {len(each.cases) - len(bad)} cases replay as recorded\n")
        sys.stdout.writelines(f"  not as recorded: {text}\n" for text in bad)
        sys.stdout.writelines(f"  not recorded: {i}: {why}\n" for i, why in each.without.items())
    sys.stdout.write(covered)
    changes = [*_mutants(lines, list(asked)), *_flips(asked)]
    chosen = [each for each in changes if options.only in str(each)]
    rows = []
    with (options.out / "judged.jsonl").open("w") as log:
        for row in _judged(context, options.jobs, recordings, chosen):
            rows.append(row)
            log.write(row.line())
            log.flush()
    return int(_report(rows) or bool(wrong))


def _recordings(kernel: str, out: Path, recorded: bool) -> Recordings:
    file = out / f"{kernel}.pickle"
    if not (recorded and file.exists()):
        with tempfile.TemporaryDirectory() as directory:
            file.write_bytes(pickle.dumps(recording.record(kernel, Path(directory) / "guest")))
    found = pickle.loads(file.read_bytes())
    assert isinstance(found, Recordings)
    return found


def _report(rows: Sequence[Row]) -> bool:
    """Print what was not noticed and the table; whether any is not explained."""
    rules = tomllib.loads(WITHOUT_EFFECT.read_text())["without_effect"]
    used, table = set(), dict[str, Counter[str]]()
    flips = dict[str, set[str]]()
    for row in rows:
        change = row.change
        found = next((n for n, rule in enumerate(rules) if _covers(rule, change)), None)
        how = row.how and ("noticed" if row.how in ("differs", "live") else "exception")
        if not how and found is not None:
            used.add(found)
            how = "explained"
        if change.switch:
            flips.setdefault(change.switch, set()).add(how)
            continue
        table.setdefault(change.file, Counter())[how or "open"] += 1
        if not how:
            tried = f"{row.tried} cases, {row.strayed} stray"
            sys.stdout.write(f"not noticed ({tried}): {change}\n")
    for switch, hows in flips.items():
        how = next((each for each in ("noticed", "exception", "explained") if each in hows), "open")
        table.setdefault("switches", Counter())[how] += 1
        if how == "open":
            sys.stdout.write(f"not noticed on any kernel: {switch}\n")
    columns = ("noticed", "exception", "explained", "open")
    table["all"] = sum(table.values(), Counter())
    sys.stdout.write(f"{'':<50} {'changes':>9}{''.join(f'{each:>10}' for each in columns)}\n")
    for file, counts in table.items():
        numbers = "".join(f"{counts[each]:>10}" for each in columns)
        sys.stdout.write(f"{file:<50} {counts.total():>9}{numbers}\n")
    for number in {*range(len(rules))} - used:
        sys.stdout.write(f"explains nothing: {rules[number]}\n")
    seconds = sum(row.seconds for row in rows)
    sys.stdout.write(f"{seconds:.0f} s of CPU time\n")
    return bool(table["all"]["open"])


def _covers(rule: Mapping[str, str], change: Change) -> bool:
    """Whether a rule of without_effect.toml is about a change."""
    if change.mutant is None:
        return rule.get("switch") == change.switch
    return (
        change.file.endswith(rule.get("file", "-"))
        and fnmatch(change.mutant.function, rule.get("function", "*"))
        and rule.get("text", "") in change.mutant.text
    )


if __name__ == "__main__":
    sys.exit(main())
