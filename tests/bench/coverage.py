"""`python -m tests.bench.coverage [KERNEL]`: coverage of user_events by the cases and by upstream's
selftests, on the same kernel.

The last line is `coverage kernel=K lines=… branches=… selftest_lines=… selftest_branches=…`, all in
percent.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from conformance.results.directory import COVERAGE
from conformance.session.options import declare, groups_of
from conformance.session.target.gcov import COUNTERS, CountedObject, Coverage, coverage
from conformance.session.target.target import Target, resolve
from tests.bench import guests
from tests.bench.__main__ import tree_of

_RUN_S = 3600.0


def main() -> int:
    """Run both and print their coverage; the exit code is that of the cases."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.coverage")
    parser.add_argument("kernel", nargs="?", default="6.12")
    kernel = parser.parse_args().kernel
    parser = argparse.ArgumentParser()
    declare(groups_of(parser))
    options = parser.parse_args(["--flavour", "gcov"])
    options.kernel = kernel
    target = resolve(options)
    (counted,) = target.counted
    code, ours = _cases(kernel)
    theirs = _selftests(target, counted, kernel)
    sys.stdout.write(f"selftests: {theirs}\n")
    sys.stdout.write(
        f"coverage kernel={kernel}"
        f" lines={ours['lines_percent']:.1f} branches={ours['branches_percent']:.1f}"
        f" selftest_lines={theirs.line_percent:.1f}"
        f" selftest_branches={theirs.branch_percent:.1f}\n"
    )
    return code


def _cases(kernel: str) -> tuple[int, dict[str, float]]:
    """The exit code and the coverage of a run of all cases."""
    uevt = Path(sys.executable).parent / "uevt"
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        command = [str(uevt), "run", "--kernel", kernel, "--flavour", "gcov", "--tier", "full"]
        command += ["--out", str(out)]
        done = subprocess.run(command, cwd=guests.ROOT, timeout=_RUN_S, check=False)
        (found,) = json.loads((out / COVERAGE).read_text())
    return done.returncode, found


def _selftests(target: Target, counted: CountedObject, kernel: str) -> Coverage:
    assert target.image is not None
    with (
        tempfile.TemporaryDirectory() as directory,
        guests.selftests(tree_of(kernel)) as command,
    ):
        file = Path(directory) / f"selftests{COUNTERS}"
        # Some versions of virtme-ng have mounted it already.
        mount = "mount -t debugfs none /sys/kernel/debug 2>/dev/null"
        keep = f"cat {counted.counters} > {file}"
        guests.vng(target.image, f"{command}; {mount}; {keep}", writable=file.parent)
        return coverage(counted, [file])


if __name__ == "__main__":
    sys.exit(main())
