"""`python -m tests.torture`: disturb runs, print what became of them, and keep the table."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.drills.provoke import hazard_module
from tests.torture.builds import disturbed_build
from tests.torture.faults import BY_NAME, FAULTS, Fault
from tests.torture.place import Place
from tests.torture.runs import KERNEL, Report, Runs

FILE = Path(__file__).parents[2] / "docs" / "reliability.md"
_BEGIN, _END = "<!-- torture -->\n", "<!-- end -->\n"


def main() -> int:
    """Let loose so many faults; 1 if any came to what it must not."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="other moments for another number")
    parser.add_argument("--only", choices=sorted(BY_NAME), action="append", help="of this kind")
    parser.add_argument("--keep", action="store_true", help="write docs/reliability.md")
    arguments = parser.parse_args()
    # Results of runs that went wrong stay there.
    directory = Path(tempfile.mkdtemp(prefix="uevt-torture-", dir="/var/tmp"))
    place = Place(directory)
    began = time.monotonic()
    reports = torture(
        place, chosen(arguments.faults, arguments.seed, arguments.only), arguments.seed
    )
    text = f"{len(reports)} faults in {time.monotonic() - began:.0f} s:\n\n{table(reports)}"
    sys.stdout.write(text)
    if arguments.keep:
        before, rest = FILE.read_text(encoding="utf-8").split(_BEGIN)
        after = rest.split(_END, 1)[1]
        FILE.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{after}", encoding="utf-8")
    place.close(keep=not all(report.good for report in reports))
    return 0 if all(report.good for report in reports) else 1


def chosen(number: int, seed: int, only: Sequence[str] | None = None) -> list[Fault]:
    """So many faults, each kind as often as its weight says, in an order by chance."""
    kinds = [BY_NAME[name] for name in only] if only else list(FAULTS)
    several = [fault for fault in kinds for _ in range(fault.weight)]
    found = [several[place % len(several)] for place in range(number)]
    Random(seed).shuffle(found)
    return found


def torture(place: Place, faults: Sequence[Fault], seed: int) -> list[Report]:
    """Disturb a run with each of the faults."""
    random = Random(seed)
    place.take_kernels()
    runs = Runs(place, hazard_module(KERNEL))
    undisturbed = runs.undisturbed()
    sys.stderr.write(f"undisturbed: {len(undisturbed.cases)} cases, {undisturbed.seconds:.1f} s\n")
    reports = []
    for number, fault in enumerate(faults, start=1):
        if fault.name == "make-killed":
            report = disturbed_build(fault, place, random)
        else:
            report = runs.disturbed(fault, undisturbed, random)
        reports.append(report)
        sys.stderr.write(
            f"{number}/{len(faults)} {fault.name} {report.hit} {report.seconds:.1f} s\n"
        )
        for what in (*report.lost, *report.blamed, *report.leaked, *report.late):
            sys.stderr.write(f"    WRONG: {what}\n")
    return reports


def table(reports: Sequence[Report]) -> str:
    """Markdown: a row for each kind of fault, and their sum."""
    lines = [
        "| fault | | times | lost | wrong blame | leaked | late | slowest |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for fault in FAULTS:
        if mine := [report for report in reports if report.fault is fault]:
            lines.append(_row(fault.name, fault.what, mine))
    return "\n".join([*lines, _row("all", "", reports)]) + "\n"


def _row(name: str, what: str, reports: Sequence[Report]) -> str:
    counts = [
        sum(len(getattr(report, kind)) for report in reports)
        for kind in ("lost", "blamed", "leaked", "late")
    ]
    slowest = max(report.seconds for report in reports)
    counted = " | ".join(map(str, [len(reports), *counts]))
    return f"| {name} | {what} | {counted} | {slowest:.1f} s |"


if __name__ == "__main__":
    sys.exit(main())
