"""`python -m tests.bench.growth`: time and memory of a run by cases, guests and kernels.

It writes docs/growth-*.svg and prints a table.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.report import markdown
from tests.bench.guests import ROOT, UEVT
from tests.bench.plot import plot

_LIMIT_S = 3600.0
_SAMPLE_S = 0.25
# Enough cases that starting the guests is a small part.
_SOME = ("-k", "write. or delete.", "--tier", "full")
_KERNELS = ("6.12", "7.3", "6.1", "6.1-bpf-iter", "6.1-byte-status", "6.1-two-pages")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took; ``memory_mb`` is the most of it and its descendants at a time (PSS)."""

    seconds: float
    cpu_s: float
    memory_mb: float


def _runs() -> Mapping[str, Mapping[int, tuple[str, ...]]]:
    """Arguments of `uevt run` by what grows, and by how much there is of it."""
    one = ("--kernel", "6.12", *_SOME)
    return {
        "cases": {n: (*one, "--guests", "2", "--repeat", str(n)) for n in (1, 2, 4, 7, 10)},
        "guests": {n: (*one, "--guests", str(n), "--repeat", "4") for n in (1, 2, 3, 4)},
        "kernels": {
            n: (*_SOME, *(word for k in _KERNELS[:n] for word in ("--kernel", k)))
            for n in (1, 2, 4, 6)
        },
    }


def cost(*words: str) -> Cost:
    """Run `uevt run` with these words.  Raises RuntimeError unless the verdict is PASS."""
    with tempfile.TemporaryDirectory() as directory:
        began, most = time.perf_counter(), 0
        pid = os.posix_spawn(
            UEVT,
            [UEVT, "run", *words, "--quiet", "--out", f"{directory}/out"],
            dict(os.environ),
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
        )
        while True:
            ended, status, used = os.wait4(pid, os.WNOHANG)
            seconds = time.perf_counter() - began
            if ended:
                break
            if seconds > _LIMIT_S:
                raise RuntimeError(f"uevt run {' '.join(words)} takes more than {_LIMIT_S:g} s")
            most = max(most, _memory_kb(pid))
            time.sleep(_SAMPLE_S)
    if status:
        code = os.waitstatus_to_exitcode(status)
        raise RuntimeError(f"uevt run {' '.join(words)} ended with {code}")
    return Cost(seconds, used.ru_utime + used.ru_stime, most / 1000)


def _memory_kb(pid: int) -> int:
    """Proportional set size (PSS) of a process and its descendants; those that ended have none."""
    process = Path(f"/proc/{pid}")
    try:
        children = " ".join(each.read_text() for each in process.glob("task/*/children"))
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    own = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return own + sum(map(_memory_kb, map(int, children.split())))


def main() -> None:
    """Measure, write the pictures, print the table."""
    rows = []
    for what, runs in _runs().items():
        found = {}
        for number, words in runs.items():
            found[number] = each = cost(*words)
            numbers = f"{each.seconds:.1f} s", f"{each.cpu_s:.1f} s", f"{each.memory_mb:.0f} MB"
            rows.append((what, str(number), *numbers))
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
        first = found[1]
        lines = {
            "time": [(n, each.seconds / first.seconds) for n, each in found.items()],
            "CPU time": [(n, each.cpu_s / first.cpu_s) for n, each in found.items()],
            "memory": [(n, each.memory_mb / first.memory_mb) for n, each in found.items()],
        }
        title = f"Cost of a run by number of {what}"
        text = plot(title, f"{what}, times the first", "times the cost of the first", lines)
        (ROOT / "docs" / f"growth-{what}.svg").write_text(text, encoding="utf-8")
    head = ("of", "number", "time", "CPU time", "memory")
    sys.stdout.write(markdown.table(head, rows))


if __name__ == "__main__":
    main()
