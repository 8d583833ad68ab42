"""`python -m tests.torture`: inject faults into runs, print what happened, and keep the table."""

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

from tests.bench.measure import keep
from tests.drills.provoke import hazard_module
from tests.faults import BY_NAME, FAULTS, Fault, Part
from tests.torture.builds import disturbed_build
from tests.torture.place import Place
from tests.torture.runs import Report, RunSeries
from tests.torture.snapshots import disturbed_snapshot

FILE = Path(__file__).parents[2] / "docs" / "reliability.md"
# Faults per run, except those that need a run of their own.
_IN_A_RUN = 12


def main() -> int:
    """Inject faults; 1 if any had a forbidden effect."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="other moments for another number")
    parser.add_argument("--only", choices=sorted(BY_NAME), action="append", help="of this kind")
    parser.add_argument("--keep", action="store_true", help="write docs/reliability.md")
    arguments = parser.parse_args()
    # SIGTERM also unmounts disks and ends processes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Results of wrong runs are kept there.
    directory = Path(tempfile.mkdtemp(prefix="uevt-torture-", dir="/var/tmp"))
    place = Place(directory)
    began = time.monotonic()
    reports = torture(
        place, chosen(arguments.faults, arguments.seed, arguments.only), arguments.seed
    )
    injected = sum(len(report.faults) for report in reports)
    text = f"{injected} faults in {time.monotonic() - began:.0f} s:\n\n{table(reports)}"
    sys.stdout.write(text)
    if arguments.keep:
        keep(FILE, "torture", text)
    place.close(keep=any(report.wrong for report in reports))
    return 0 if all(not report.wrong for report in reports) else 1


def chosen(number: int, seed: int, only: Sequence[str] | None = None) -> list[Fault]:
    """Draw faults by weight, in random order."""
    kinds = [BY_NAME[name] for name in only] if only else list(FAULTS)
    # Every kind is among the first, however few are drawn.
    turns = [(turn > 0, turn / kind.weight, kind) for kind in kinds for turn in range(kind.weight)]
    several = [kind for *_, kind in sorted(turns, key=lambda each: each[:2])]
    found = [several[place % len(several)] for place in range(number)]
    Random(seed).shuffle(found)
    return found


def together(faults: Sequence[Fault]) -> list[list[Fault]]:
    """The faults of each run: several, or one that needs a run of its own."""
    runs = [[fault] for fault in faults if fault.alone]
    others = [fault for fault in faults if not fault.alone]
    return [others[at : at + _IN_A_RUN] for at in range(0, len(others), _IN_A_RUN)] + runs


def torture(place: Place, faults: Sequence[Fault], seed: int) -> list[Report]:
    """Inject all faults."""
    random = Random(seed)
    place.take_kernels()
    runs = RunSeries(place, hazard_module())
    undisturbed = runs.undisturbed()
    sys.stderr.write(f"undisturbed: {len(undisturbed.cases)} cases, {undisturbed.seconds:.1f} s\n")
    reports: list[Report] = []
    waiting = list(faults)
    while waiting:
        for each in together(waiting):
            match each[0].breaks:
                case Part.BUILD:
                    report = disturbed_build(each[0], place, random)
                case Part.SNAPSHOT:
                    report = disturbed_snapshot(each[0], place, random)
                case _:
                    report = runs.disturbed(each, undisturbed, random)
            reports.append(report)
            _print_progress(report, len(faults), sum(len(one.faults) for one in reports))
        # A fault that was not injected, because its target had ended, is injected again.
        injected = Counter(fault for report in reports for fault in report.faults)
        waiting = list((Counter(faults) - injected).elements())
    return reports


def _print_progress(report: Report, planned: int, done: int) -> None:
    names = ", ".join(fault.name for fault in report.faults)
    sys.stderr.write(f"{done}/{planned} {names}: {report.seconds:.1f} s\n")
    for what in report.wrong:
        sys.stderr.write(f"    WRONG: {what}\n")


def table(reports: Sequence[Report]) -> str:
    """Markdown: a row for each kind of fault, and their sum.

    A mistake in a run of several faults counts for each of their kinds.
    """
    lines = [
        "| fault | | times | lost | wrong blame | leaked | late | slowest run |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for fault in FAULTS:
        times = sum(report.faults.count(fault) for report in reports)
        if times:
            mine = [report for report in reports if fault in report.faults]
            lines.append(_row(fault.name, f"{fault.breaks}: {fault.how}", times, mine))
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
