"""`python -m tests.bench.coverage [KERNEL]`: coverage of user_events by the cases and by upstream's
selftests, on the same kernel.

The last line is `coverage kernel=K lines=… branches=… selftest_lines=… selftest_branches=…`, all in
percent.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from conformance.results.directory import COVERAGE
from conformance.session.options import default_options
from conformance.session.target.gcov import COUNTERS, CountedObject, Coverage, coverage
from conformance.session.target.target import Target, resolve
from tests.bench import guests


def main() -> int:
    """Run both and print their coverage; the exit code is that of the cases."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.coverage")
    parser.add_argument("kernel", nargs="?", default="6.12")
    kernel = parser.parse_args().kernel
    target = resolve(default_options(kernel=kernel, flavour="gcov"))
    (counted,) = target.counted
    words = ("--kernel", kernel, "--flavour", "gcov", "--tier", "full")
    with guests.finished_run(*words) as (code, out):
        (ours,) = json.loads((out / COVERAGE).read_text())
    theirs = _selftests(target, counted, kernel)
    sys.stdout.write(f"selftests: {theirs}\n")
    sys.stdout.write(
        f"coverage kernel={kernel}"
        f" lines={ours['lines_percent']:.1f} branches={ours['branches_percent']:.1f}"
        f" selftest_lines={theirs.covered.lines_percent:.1f}"
        f" selftest_branches={theirs.covered.branches_percent:.1f}\n"
    )
    return code


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
