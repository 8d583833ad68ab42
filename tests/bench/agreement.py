"""`python -m tests.bench.agreement`: compare each case with its program, on a kernel.

The programs of `uevt repro` run in guests without our agent: many in one guest, and
those that deviate once more alone.  A program agrees if it exits 0 where its case passes, and 1
where its case deviates.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct, field

from conformance.abi.bugs import BUGS
from conformance.abi.profile import Profile, profile_for
from conformance.cases.variants import Variant, all_variants
from conformance.repro.errors import NotExpressible
from conformance.repro.source import Description, c_program
from conformance.results.outcome import CONFORMING, DEVIATIONS, Outcome
from conformance.results.results_json import NAME, read_results
from conformance.runner.model_program import program_of
from conformance.session.selection import expression, matches
from kernels.build.build import ensure
from kernels.request import Request
from kernels.store.store import Store
from tests.bench.guests import finished_run
from tests.install.booted import try_in_system

_STRICT = ("-Wall", "-Wextra", "-Werror", "-O1", "-static", "-s")
_BATCH = 60
_SECONDS = 150
_LEFT = "crash"
_UNANSWERED = re.compile("undecided|needs the program .*")
# Outcomes of cases whose programs exit 0.
_EXPECTED = CONFORMING | {Outcome.XFAIL}


_BEFORE = """\
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mount -t tmpfs -o mode=755 run /run
echo 2 > /proc/sys/kernel/perf_event_paranoid
echo 2 > /proc/sys/kernel/unprivileged_bpf_disabled"""
# A program that fails may leave anything behind; it is repeated alone in a guest of its own.
_AFTER = """\
{ kill -9 -1
umount -l /run
mount -t tmpfs -o mode=755 run /run
cd /sys/kernel/tracing
echo 0 > events/enable
echo 0 > events/user_events/filter
rmdir instances/*
true > dynamic_events
true > set_event_pid
true > set_event_notrace_pid
echo 32767 > /proc/sys/kernel/user_events_max
echo 1 > tracing_on
true > error_log
echo 0 > snapshot
true > trace
cd /lab
sleep 0.05; } 2>/dev/null"""


class Row(Struct):
    """A case: its outcome, how its program ended, and what that printed."""

    case: str
    outcome: str
    ended: str = ""
    printed: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the program says what the case says."""
        return self.ended == ("0" if self.outcome in _EXPECTED else "1")

    @property
    def unanswered(self) -> str:
        """Why there is no answer: the kernel took another allowed course, or a program is missing.

        The guest has busybox only.  "" if there is one.
        """
        found = _UNANSWERED.search(self.printed) if self.ended == "4" else None
        return found[0] if found else ""

    def __str__(self) -> str:
        word = "" if self.agrees else self.unanswered or "DISAGREES"
        return f"{self.case:<60} {self.outcome:<8} {self.ended}  {word}".rstrip()


class Bench(Struct):
    """The kernel, the directory for programs, and the rows so far."""

    image: Path
    directory: Path
    cpus: int
    rows: dict[str, Row] = field(default_factory=dict)

    def run(self, programs: Mapping[str, Path]) -> None:
        """Run programs in one guest after the other until each has ended."""
        left = dict(programs)
        while left:
            ended = self._guest(dict(list(left.items())[:_BATCH]))
            left = {case: path for case, path in left.items() if case not in ended}
            self._note(ended)
        # What another program left behind is no answer of the kernel.
        for case in [case for case in programs if not self.rows[case].agrees]:
            self._note(self._guest({case: programs[case]}))

    def _note(self, ended: Mapping[str, tuple[str, str]]) -> None:
        for case, (status, printed) in ended.items():
            self.rows[case].ended, self.rows[case].printed = status, printed

    def _guest(self, programs: Mapping[str, Path]) -> dict[str, tuple[str, str]]:
        """How each program ended, and what it printed; those after a crash are missing."""
        numbered = {f"{number:04}": case for number, case in enumerate(programs)}
        with tempfile.TemporaryDirectory(dir=self.directory) as lab:
            for number, case in numbered.items():
                shutil.copy(programs[case], Path(lab, number))
            commands = {number: f"timeout -s KILL {_SECONDS} ./{number}" for number in numbered}
            place = (self.image, Path(lab), commands, self.directory)
            found, console = try_in_system(*place, before=_BEFORE, after=_AFTER, cpus=self.cpus)
        ended = {
            numbered[number]: (str(each.code), each.out + each.errors)
            for number, each in found.items()
        }
        if len(found) < len(numbered):
            number = f"{len(found):04}"
            _, begun, printed = console.partition(f"=={number}\n")
            if not begun:
                raise RuntimeError(f"the guest ran nothing: {console[-2000:]}")
            ended[numbered[number]] = (_LEFT, printed)
        return ended


def _compile(source: Path, program: Path) -> None:
    command = ["gcc", *_STRICT, "-o", str(program), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source} does not compile:\n{done.stderr}")


def _outcomes(arguments: argparse.Namespace) -> dict[str, str]:
    """The outcome of each case: of a run or summary that exists, else of a new run."""
    given = arguments.results
    if given is not None and given.suffix == ".json" and given.name != NAME:
        return {case: row[0] for case, row in json.loads(given.read_text())["cases"].items()}
    if given is not None:
        return _of_results(given if given.name == NAME else given / NAME)
    words = ["--kernel", arguments.kernel, *(f"--patch={patch}" for patch in arguments.patch)]
    words += [f"--abi={arguments.abi}"] if arguments.abi else []
    with finished_run(*words, "--tier=full", "--quiet", "-k", arguments.keyword) as (_, out):
        return _of_results(out / NAME)


def _of_results(path: Path) -> dict[str, str]:
    """Outcomes that are answers: a program sees no console, and no state after its end."""
    found = {}
    for case in read_results(path).cases:
        answers = all(each.step for each in case.mismatches) and not case.reports
        if case.outcome in _EXPECTED or (case.outcome in DEVIATIONS and answers):
            found[case.id] = case.outcome.value
    return found


def _sources(
    variants: Iterable[Variant], profile: Profile, directory: Path
) -> Iterator[tuple[Variant, Path | str]]:
    """The source of each case, or the reason why there is none."""
    for serial, variant in enumerate(variants, 1):
        case = variant.case
        if case.module:
            yield variant, f"needs the kernel module {case.module}"
            continue
        about = Description(variant.id, case.sentence, case.doc, profile.name)
        try:
            text = c_program(program_of(variant, profile, serial), profile, about)
        except NotExpressible as error:
            yield variant, str(error)
            continue
        source = directory / f"{variant.id}.c"
        source.write_text(text)
        yield variant, source


def main() -> int:
    """Print the table; 1 if a program disagrees with its case."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.agreement")
    add = parser.add_argument
    add("--kernel", default="6.12", help="a kernel of the catalog")
    add("--patch", action="append", default=[], type=Path)
    add("--abi", help="expect the answers of an ABI")
    add("-k", dest="keyword", default="", help="only cases with EXPR in their ids")
    about = "only cases that show a known bug, with the answers of a kernel without bugs: exit 1"
    add("--fixed", action="store_true", help=about)
    add("--every", type=int, default=1, metavar="N", help="only every N-th of them")
    add("--results", type=Path, help="outcomes of a run, or docs/results/K.json (default: run)")
    add("--table", type=Path, help="write the table to a file")
    arguments = parser.parse_args()
    store = Store()
    entry = Request(arguments.kernel, patches=tuple(arguments.patch)).entry(store)
    built = ensure(entry, store)
    abi = arguments.abi or entry.abi_for(built.release)
    profile = profile_for(abi, base=built.release)
    present = [bug.name for bug in BUGS if not profile.fixed(bug.name)]
    wanted = expression(arguments.keyword)
    outcomes = _outcomes(arguments)
    chosen = [
        each
        for each in all_variants()
        if each.case.applies(profile) and matches(wanted, each.id) and each.id in outcomes
    ][:: arguments.every]
    chosen = [each for each in chosen if outcomes[each.id] in _EXPECTED | DEVIATIONS]
    if arguments.fixed:
        without = ",".join([abi, *(f"{bug}=fixed" for bug in present)])
        fixed = profile_for(without, base=built.release)
        chosen = [each for each in chosen if _shows_bug(each, profile, fixed)]
        outcomes |= {each.id: Outcome.FAIL.value for each in chosen}
        profile = fixed
    with tempfile.TemporaryDirectory() as directory:
        rows, none = _performed(chosen, profile, outcomes, built.image, Path(directory))
    return _report(entry.kernel_id, rows, none, arguments.table)


def _shows_bug(variant: Variant, present: Profile, fixed: Profile) -> bool:
    """Whether the answers to a case show a known bug; a program sees no console."""
    if not variant.case.bugs or not variant.case.applies(fixed):
        return False
    return program_of(variant, present) != program_of(variant, fixed)


def _performed(
    chosen: Sequence[Variant],
    profile: Profile,
    outcomes: Mapping[str, str],
    image: Path,
    directory: Path,
) -> tuple[list[Row], dict[str, str]]:
    found = list(_sources(chosen, profile, directory))
    none = {variant.id: reason for variant, reason in found if isinstance(reason, str)}
    rows: list[Row] = []
    for cpus in (1, 2):
        sources = {
            variant.id: path
            for variant, path in found
            if isinstance(path, Path) and variant.case.processors == cpus
        }
        programs = {case: path.with_suffix("") for case, path in sources.items()}
        with ThreadPoolExecutor(2) as workers:
            list(workers.map(_compile, sources.values(), programs.values()))
        bench = Bench(image, directory, cpus, {case: Row(case, outcomes[case]) for case in sources})
        bench.run(programs)
        rows += bench.rows.values()
    return rows, none


def _report(kernel: str, rows: Sequence[Row], none: Mapping[str, str], table: Path | None) -> int:
    lines = [f"{'case on ' + kernel:<60} {'outcome':<8} exit status of its program"]
    lines += sorted(map(str, rows))
    lines += [f"{case:<60} no program: {reason}" for case, reason in sorted(none.items())]
    if table is not None:
        table.write_text("".join(f"{line}\n" for line in lines))
    unanswered = Counter(row.unanswered for row in rows if row.unanswered)
    wrong = [row for row in rows if not row.agrees and not row.unanswered]
    for row in wrong:
        sys.stdout.write(f"{row}\n{row.printed}\n")
    surfaces = Counter(row.case.partition(".")[0] for row in rows)
    agreeing = Counter(row.case.partition(".")[0] for row in rows if row.agrees)
    for surface, number in sorted(surfaces.items()):
        sys.stdout.write(f"{surface:<20} {agreeing[surface]:>5} of {number}\n")
    words = f"{len(rows)} programs, {len(wrong)} disagree"
    words += "".join(f", {number} {why}" for why, number in sorted(unanswered.items()))
    words += f"; {len(none)} cases without a program"
    sys.stdout.write(f"{kernel}: {words}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    assert shutil.which("gcc")
    sys.exit(main())
