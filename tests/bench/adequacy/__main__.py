"""`python -m tests.bench.adequacy`: does a real kernel test each rule of the model?

The operations and answers of all cases are recorded on some kernels.  Each mutant of the model, and
each dated switch flipped, must contradict a recorded answer.  Where the program of a changed model
strays from what was recorded, its cases run on the kernel itself.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import pickle
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from math import inf
from multiprocessing import Pipe, get_context
from pathlib import Path
from typing import Any, TypeVar, cast

import coverage
from msgspec.structs import asdict, replace

from conformance.abi.switches import SWITCHES
from tests.bench.adequacy import recording, replay
from tests.bench.adequacy.changing import ROOT, Change
from tests.bench.adequacy.mutants import mutants

KERNELS = (
    *(recording.FIXED, "6.12", "6.1", "7.3"),
    *("6.1-byte-status", "6.1-bpf-iter", "6.1-two-pages"),
)
MODEL = "conformance/model"
# Not profile.py, which reads what users write, nor its tables: those are the switches.
FILES = (
    *(f"{MODEL}/user_events/{name}.py" for name in ("registration", "writing", "status_file")),
    *(f"{MODEL}/user_events/{name}.py" for name in ("limits", "bpf_context", "helper_module")),
    *(f"conformance/abi/{name}.py" for name in ("grammar", "uapi", "perf", "bpf")),
)
EXPLAINED = Path(__file__).with_name("explained.toml")
# Cases of a program that strays which run on a kernel.
_MOST_LIVE = 8
# Seconds of CPU time to look for a case that notices an explained change.
_EXPLAINED_S = 5.0
# Cases that noticed other changes are tried first, so many of them.
_MOST_FIRST = 60
# Seconds for a forked process: all recordings, on a busy machine.
_LONGEST_S = 1800.0
_COLUMNS = ("noticed", "exception", "no effect", "no kernel", "open")

Case = tuple[str, str]
Answer = TypeVar("Answer")
Rule = Mapping[str, Any]
# A change, how it was noticed, the rule that explains why not, and CPU time in seconds.
Judged = tuple[Change, replay.Noticed, Rule | None, float]

# Inherited by forked processes.
_recordings: dict[str, recording.Recordings] = {}


def _replay(change: Change, limit_s: float) -> tuple[replay.Noticed, float]:
    """Judge a change by recorded answers; CPU time in seconds."""
    began = time.process_time()
    try:
        change.act()
        module = importlib.import_module(replay.__name__)
        found = module.noticed(_recordings, change.cases, change.switch, limit_s)
    except Exception as error:
        found = replay.Noticed(type(error).__name__)
    return found, time.process_time() - began


def _live(change: Change, strayed: Sequence[Case]) -> Case:
    """The first case that strays and does not pass on its kernel, ("", "") for none."""
    change.act()
    module = importlib.import_module(recording.__name__)
    for kernel in dict.fromkeys(kernel for kernel, _ in strayed):
        chosen = [case for other, case in strayed if other == kernel][:_MOST_LIVE]
        with tempfile.TemporaryDirectory() as directory:
            result = module.fails_on(kernel, chosen, change.switch, Path(directory) / "guest")
        if result is not None:
            return kernel, result.id
    return "", ""


def _survey() -> tuple[Any, Any, dict[str, Any], str]:
    """See ``replay.survey``; by file and line, the cases that reach it; the coverage as text."""
    folders = [f"{ROOT}/{MODEL}/*", f"{ROOT}/conformance/abi/*"]
    measured = coverage.Coverage(data_file=None, branch=True, include=folders)
    measured.exclude("raise NotModelled")
    measured.start()
    for name in [each for each in sys.modules if each.startswith(("conformance", replay.__name__))]:
        del sys.modules[name]
    module = importlib.import_module(replay.__name__)
    asked, wrong = module.survey(_recordings, measured.switch_context)
    measured.stop()
    data = measured.get_data()
    lines = {file: data.contexts_by_lineno(str(ROOT / file)) for file in FILES}
    text = io.StringIO()
    measured.report(include=[f"{ROOT}/{MODEL}/user_events/*"], file=text, show_missing=True)
    total = measured.report(include=[f"{ROOT}/{MODEL}/*"], file=io.StringIO())
    return asked, wrong, lines, f"{text.getvalue()}{MODEL}: {total:.0f} %\n"


def _spread(cases: Iterable[Case], rarity: Mapping[Case, int]) -> list[Case]:
    """One variant of every case first, the one that reaches the rarest line, on each kernel."""
    seen = Counter[Case]()
    keys = dict[Case, tuple[int, int]]()
    for kernel, case_id in sorted(cases, key=lambda each: (rarity.get(each, sys.maxsize), each)):
        case = kernel, ".".join(case_id.split(".")[:2])
        seen[case] += 1
        keys[kernel, case_id] = seen[case], len(keys)
    return sorted(keys, key=keys.__getitem__)


def _mutants(
    lines: Mapping[str, Mapping[int, list[str]]], every: Iterable[Case]
) -> Iterator[Change]:
    """The mutants of all files; one at import concerns all cases, others those that reach it."""
    for file in FILES:
        reaching = {line: set(map(_case, filter(None, each))) for line, each in lines[file].items()}
        rarity: dict[Case, int] = {}
        for cases in sorted(reaching.values(), key=len):
            for case in cases:
                rarity.setdefault(case, len(cases))
        for mutant in mutants((ROOT / file).read_text()):
            reached = set[Case]().union(*(reaching.get(line, ()) for line in mutant.lines))
            yield Change(file, mutant, _spread(reached if mutant.function else every, rarity))


def _case(context: str) -> Case:
    kernel, case_id = context.split()
    return kernel, case_id


def _flips(asked: Mapping[Case, frozenset[str]]) -> Iterator[Change]:
    """Each switch, flipped on each kernel, with the cases that ask for it."""
    for kernel, switch in product(KERNELS, (each.name for each in SWITCHES)):
        cases = [case for case, names in asked.items() if switch in names and case[0] == kernel]
        yield Change(kernel, None, _spread(cases, {}), switch)


def _judged(changes: Iterable[Change], rules: Sequence[Rule]) -> Iterator[Judged]:
    """By recorded answers; where a program strayed and nothing else was noticed, on the kernel."""
    first = list[Case]()
    for change in changes:
        rule = next((each for each in rules if _covers(each, change)), None)
        limit_s = inf if rule is None else _EXPLAINED_S
        applicable = {*change.cases}
        cases = [*(each for each in first if each in applicable), *change.cases]
        found, seconds = _forked(_replay, replace(change, cases=cases), limit_s) or (
            replay.Noticed("dies"),
            float(replay.CASE_S),
        )
        if found.how and found.where in applicable:
            first = [found.where, *(each for each in first if each != found.where)][:_MOST_FIRST]
        if not found.how and found.strayed:
            where = _forked(_live, change, found.strayed) or ("", "")
            found = replace(found, how="live" if all(where) else "", where=where)
        yield change, found, rule, seconds


def _forked(function: Callable[..., Answer], *arguments: object) -> Answer | None:
    """The result of a function that runs in a forked process, None if that dies or hangs."""

    def send() -> None:
        sender.send(function(*arguments))

    receiver, sender = Pipe(duplex=False)
    with receiver:
        process = get_context("fork").Process(target=send)
        process.start()
        sender.close()
        try:
            return cast(Answer, receiver.recv()) if receiver.poll(_LONGEST_S) else None
        except EOFError:
            return None
        finally:
            # It has answered, died, or runs for ever.
            process.join(1.0)
            process.kill()
            process.join()


def main() -> int:
    """Print the table; 1 if a change is neither noticed nor known to be without effect."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.adequacy")
    parser.add_argument("--out", type=Path, default=ROOT / "build/adequacy")
    parser.add_argument("--recorded", action="store_true", help="use the answers of the last run")
    parser.add_argument("--only", default="", help="only mutants and switches with this text")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for kernel in KERNELS:
        _recordings[kernel] = _recorded(kernel, options.out, again=not options.recorded)
    replay.variants_by_id()
    surveyed = _forked(_survey)
    assert surveyed is not None, "it has printed why"
    asked, wrong, lines, covered = surveyed
    for kernel, each in _recordings.items():
        bad = wrong.get(kernel, [])
        sys.stdout.write(f"{kernel}: {len(each.cases) - len(bad)} cases replay as recorded\n")
        sys.stdout.writelines(f"  not as recorded: {text}\n" for text in bad)
        sys.stdout.writelines(f"  not recorded: {i}: {why}\n" for i, why in each.without.items())
    sys.stdout.write(covered)
    changes = chain(_mutants(lines, asked), _flips(asked))
    chosen = (each for each in changes if options.only in str(each))
    rules = tomllib.loads(EXPLAINED.read_text())["explained"]
    judged = list[Judged]()
    with (options.out / "judged.jsonl").open("w") as log:
        for change, found, rule, seconds in _judged(chosen, rules):
            judged.append((change, found, rule, seconds))
            log.write(json.dumps({"change": str(change), **asdict(found), "s": seconds}) + "\n")
            log.flush()
    used = [rule for _, found, rule, _ in judged if not found.how]
    sys.stdout.writelines(f"explains nothing: {rule}\n" for rule in rules if rule not in used)
    return int(_report(judged) or bool(wrong))


def _recorded(kernel: str, out: Path, *, again: bool) -> recording.Recordings:
    file = out / f"{kernel}.pickle"
    if again or not file.exists():
        with tempfile.TemporaryDirectory() as directory:
            made = recording.record(kernel, Path(directory) / "guest")
            file.write_bytes(pickle.dumps(made))
    found = pickle.loads(file.read_bytes())
    assert isinstance(found, recording.Recordings)
    return found


def _report(judged: Sequence[Judged]) -> bool:
    """Print what was not noticed and the table; whether anything is open."""
    # A switch counts once, by the kernel that tells most.
    best = dict[tuple[str, str], int]()
    for change, found, rule, _ in judged:
        how = "noticed" if found.how in ("differs", "live") else "exception"
        if not found.how:
            how = rule["kind"] if rule is not None else "open"
        key = ("switches", change.switch) if change.switch else (change.where, str(change))
        best[key] = min(best.get(key, len(_COLUMNS)), _COLUMNS.index(how))
    table = {where: Counter[str]() for where, _ in best}
    for (where, what), column in best.items():
        table[where][_COLUMNS[column]] += 1
        if _COLUMNS[column] == "open":
            sys.stdout.write(f"not noticed: {what}\n")
    table["all"] = sum(table.values(), Counter())
    sys.stdout.write(f"{'':<46} changes{''.join(f'{each:>10}' for each in _COLUMNS)}\n")
    for where, counts in table.items():
        numbers = "".join(f"{counts[each]:>10}" for each in _COLUMNS)
        sys.stdout.write(f"{where:<46} {counts.total():>7}{numbers}\n")
    sys.stdout.write(f"{sum(seconds for *_, seconds in judged):.0f} s of CPU time\n")
    return bool(table["all"]["open"])


def _covers(rule: Rule, change: Change) -> bool:
    """Whether a rule is about a change."""
    if change.mutant is None:
        return bool(rule.get("switch") == change.switch)
    place = (
        change.where.endswith(rule.get("file", "-")) and rule["function"] == change.mutant.function
    )
    return place and any(each in change.mutant.text for each in rule.get("text", ("",)))


if __name__ == "__main__":
    sys.exit(main())
