"""`python -m tests.bench.coverage [KERNEL]`: coverage of user_events by the cases and by upstream's
selftests, on the same kernel.

Lines and branches that no case executes are printed with the reason that unreached.toml gives; the
exit code is 1 if one has none.  The last line is `coverage kernel=K lines=… branches=…
selftest_lines=… selftest_branches=…`, all in percent.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from conformance.results.directory import COVERAGE
from conformance.session.options import default_options
from conformance.session.target.gcov import COUNTERS, CountedObject, Coverage, coverage
from conformance.session.target.target import Target, resolve
from tests.bench import guests, reasons

UNREACHED = Path(__file__).with_name("unreached.toml")
# The head of a function, or the second line of one.
_HEAD = re.compile(r"[a-z_*][\w\s*]*?\b(\w+)\((?!.*;$)")


class Missed(Struct, frozen=True):
    """A line of the source that was not executed, or ``branches`` of it."""

    number: int
    function: str
    text: str
    branches: int

    def __str__(self) -> str:
        several = "es" if self.branches > 1 else ""
        what = f"{self.branches} branch{several} of " if self.branches else ""
        return f"{self.function}:{self.number}: {what}{self.text}"


def missed(
    source: str, lines: Sequence[int], branches: Sequence[Sequence[int]]
) -> Iterator[Missed]:
    """What was not executed of a C source, in order; a line that was not hides its branches."""
    function, partly = "", Counter(number for number, _ in branches)
    for number, text in enumerate(source.splitlines(), 1):
        if head := _HEAD.match(text):
            function = head[1]
        if number in lines:
            yield Missed(number, function, text.strip(), 0)
        elif number in partly:
            yield Missed(number, function, text.strip(), partly[number])


def main() -> int:
    """Run both and print their coverage; the exit code is 1 if anything is unexplained."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.coverage")
    parser.add_argument("kernel", nargs="?", default="6.12")
    kernel = parser.parse_args().kernel
    target = resolve(default_options(kernel=kernel, flavour="gcov"))
    (counted,) = target.counted
    words = ("--kernel", kernel, "--flavour", "gcov", "--tier", "full")
    with guests.finished_run(*words) as (code, out):
        (ours,) = json.loads((out / COVERAGE).read_text())
    source = (guests.tree_of(kernel) / counted.source).read_text()
    found = list(missed(source, ours["missed_lines"], ours["missed_branches"]))
    unexplained = _print_missed(found)
    theirs = _selftests(target, counted, kernel)
    sys.stdout.write(f"selftests: {theirs}\n")
    sys.stdout.write(
        f"coverage kernel={kernel}"
        f" lines={ours['lines_percent']:.1f} branches={ours['branches_percent']:.1f}"
        f" selftest_lines={theirs.covered.lines_percent:.1f}"
        f" selftest_branches={theirs.covered.branches_percent:.1f}\n"
    )
    return code or int(unexplained)


def _print_missed(found: Sequence[Missed]) -> bool:
    """Print what was not executed, by reason; whether anything has none."""
    known = reasons.read(UNREACHED)["reasons"]
    by_reason: dict[str, list[Missed]] = {}
    for each in found:
        why = reasons.reason(each.function, each.text, known)
        by_reason.setdefault(why, []).append(each)
    for why, group in sorted(by_reason.items()):
        lines = sum(not each.branches for each in group)
        branches = sum(each.branches for each in group)
        sys.stdout.write(f"{why or 'unexplained'}: {lines} lines, {branches} branches\n")
        sys.stdout.writelines(f"  {each}\n" for each in group)
    return "" in by_reason


def _selftests(target: Target, counted: CountedObject, kernel: str) -> Coverage:
    assert target.image is not None
    with (
        tempfile.TemporaryDirectory() as directory,
        guests.selftests(guests.tree_of(kernel)) as command,
    ):
        file = Path(directory) / f"selftests{COUNTERS}"
        # Some versions of virtme-ng have mounted it already.
        mount = "mount -t debugfs none /sys/kernel/debug 2>/dev/null"
        keep = f"cat {counted.counters} > {file}"
        guests.vng(target.image, f"{command}; {mount}; {keep}", writable=file.parent)
        return coverage(counted, [file])


if __name__ == "__main__":
    sys.exit(main())
