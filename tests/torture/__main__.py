"""`python -m tests.torture`: disturb runs, print what became of them, and keep the table."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.drills.provoke import hazard_module
from tests.faults import BY_NAME, FAULTS, Fault
from tests.torture.builds import disturbed_build
from tests.torture.place import Place
from tests.torture.runs import KERNEL, Report, Runs

FILE = Path(__file__).parents[2] / "docs" / "reliability.md"
# Of one run, where they do not want it for themselves.
_IN_A_RUN = 12
_BEGIN, _END = "<!-- torture -->\n", "<!-- end -->\n"


def main() -> int:
    """Let loose so many faults; 1 if any came to what it must not."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="other moments for another number")
    parser.add_argument("--only", choices=sorted(BY_NAME), action="append", help="of this kind")
    parser.add_argument("--keep", action="store_true", help="write docs/reliability.md")
    arguments = parser.parse_args()
    # What is mounted, or runs, is put away then too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Results of runs that went wrong stay there.
    directory = Path(tempfile.mkdtemp(prefix="uevt-torture-", dir="/var/tmp"))
    place = Place(directory)
    began = time.monotonic()
    reports = torture(
        place, chosen(arguments.faults, arguments.seed, arguments.only), arguments.seed
    )
    loose = sum(len(report.faults) for report in reports)
    text = f"{loose} faults in {time.monotonic() - began:.0f} s:\n\n{table(reports)}"
    sys.stdout.write(text)
    if arguments.keep:
        before, rest = FILE.read_text(encoding="utf-8").split(_BEGIN)
        after = rest.split(_END, 1)[1]
        FILE.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{after}", encoding="utf-8")
    place.close(keep=any(report.wrong for report in reports))
    return 0 if all(not report.wrong for report in reports) else 1


def chosen(number: int, seed: int, only: Sequence[str] | None = None) -> list[Fault]:
    """So many faults, each kind as often as its weight says, in an order by chance."""
    kinds = [BY_NAME[name] for name in only] if only else list(FAULTS)
    # Whatever their number, all kinds are among the first.
    turns = [(turn > 0, turn / kind.weight, kind) for kind in kinds for turn in range(kind.weight)]
    several = [kind for *_, kind in sorted(turns, key=lambda each: each[:2])]
    found = [several[place % len(several)] for place in range(number)]
    Random(seed).shuffle(found)
    return found


def together(faults: Sequence[Fault]) -> list[list[Fault]]:
    """The faults of each run: several, but for those that want a run of their own."""
    runs = [[fault] for fault in faults if fault.alone]
    others = [fault for fault in faults if not fault.alone]
    return [others[at : at + _IN_A_RUN] for at in range(0, len(others), _IN_A_RUN)] + runs


def torture(place: Place, faults: Sequence[Fault], seed: int) -> list[Report]:
    """Disturb runs with the faults."""
    random = Random(seed)
    place.take_kernels()
    runs = Runs(place, hazard_module(KERNEL))
    undisturbed = runs.undisturbed()
    sys.stderr.write(f"undisturbed: {len(undisturbed.cases)} cases, {undisturbed.seconds:.1f} s\n")
    reports: list[Report] = []
    waiting = list(faults)
    while waiting:
        for each in together(waiting):
            if each[0].name == "make-killed":
                report = disturbed_build(each[0], place, random)
            else:
                report = runs.disturbed(each, undisturbed, random)
            reports.append(report)
            _tell(report, len(faults), sum(len(one.faults) for one in reports))
        # Some were never let loose: whom they were meant for has already ended.
        loose = Counter(fault for report in reports for fault in report.faults)
        waiting = list((Counter(faults) - loose).elements())
    return reports


def _tell(report: Report, planned: int, done: int) -> None:
    names = ", ".join(fault.name for fault in report.faults)
    sys.stderr.write(f"{done}/{planned} {names}: {report.seconds:.1f} s\n")
    for what in report.wrong:
        sys.stderr.write(f"    WRONG: {what}\n")


def table(reports: Sequence[Report]) -> str:
    """Markdown: a row for each kind of fault, and their sum.

    A mistake in a run of several faults is counted for each of their kinds.
    """
    lines = [
        "| fault | | times | lost | wrong blame | leaked | late | slowest run |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for fault in FAULTS:
        times = sum(report.faults.count(fault) for report in reports)
        if times:
            mine = [report for report in reports if fault in report.faults]
            lines.append(_row(fault.name, fault.what, times, mine))
    times = sum(len(report.faults) for report in reports)
    return "\n".join([*lines, _row("all", f"{len(reports)} runs", times, reports)]) + "\n"


def _row(name: str, what: str, times: int, reports: Sequence[Report]) -> str:
    counts = [
        sum(len(getattr(report, kind)) for report in reports)
        for kind in ("lost", "blamed", "leaked", "late")
    ]
    slowest = max(report.seconds for report in reports)
    counted = " | ".join(map(str, [times, *counts]))
    return f"| {name} | {what} | {counted} | {slowest:.1f} s |"


if __name__ == "__main__":
    sys.exit(main())
