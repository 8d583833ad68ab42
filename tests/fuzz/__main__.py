"""`python -m tests.fuzz`: fuzz everything that reads what may be hostile, and print a table."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.driver import Fuzzer, Tally, keep
from tests.fuzz.targets import targets

_TURN_S = 2.0


def main() -> int:
    """Fuzz for as long as was asked for; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0, help="other inputs for another number")
    parser.add_argument("--only", metavar="NAME", help="targets with NAME in their names")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="uevt-fuzz-") as scratch:
        chosen = [each for each in targets(Path(scratch)) if (arguments.only or "") in each.name]
        fuzzers = [Fuzzer(target, arguments.seed) for target in chosen]
        tallies = [fuzzer.tally for fuzzer in fuzzers]
        # In turn and for the same time: what is read quickly is read more often.
        while (done := sum(tally.inputs for tally in tallies)) < arguments.inputs:
            for fuzzer in fuzzers:
                fuzzer.go(arguments.inputs - done, _TURN_S)
            sys.stderr.write(f"{done} inputs\n")
    sys.stdout.write(table(tallies))
    for tally in tallies:
        keep(tally.findings)
    found = [finding for tally in tallies for finding in tally.findings]
    for finding in found:
        sys.stdout.write(f"fixtures/fuzz/{finding.target}/{finding.name}: {finding.what}\n")
    return 1 if found else 0


def table(tallies: Sequence[Tally]) -> str:
    """Markdown: a row for each target, and their sum."""
    lines = [
        "| target | inputs | of these read | seconds | slowest, ms | grown, MiB | findings |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    total = Tally("all")
    for each in tallies:
        lines.append(_row(each))
        total.inputs += each.inputs
        total.read += each.read
        total.seconds += each.seconds
        total.slowest_s = max(total.slowest_s, each.slowest_s)
        total.grown_mib += each.grown_mib
        total.findings += each.findings
    return "\n".join([*lines, _row(total)]) + "\n"


def _row(tally: Tally) -> str:
    return (
        f"| {tally.target} | {tally.inputs} | {tally.read} | {tally.seconds:.1f} "
        f"| {tally.slowest_s * 1e3:.0f} | {tally.grown_mib} | {len(tally.findings)} |"
    )


if __name__ == "__main__":
    sys.exit(main())
