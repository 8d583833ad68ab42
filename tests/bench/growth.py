"""`python -m tests.bench.growth`: time and memory of a run by cases, guests and kernels.

It writes docs/growth-*.svg and prints a table.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

import psutil
from msgspec import Struct

from conformance.report import markdown
from tests.bench.guests import ROOT, UEVT
from tests.bench.plot import plot

_LIMIT_S = 3600.0
_SAMPLE_S = 0.25
# Enough cases that starting the guests is a small part.
_SOME = ("-k", "write. or delete.", "--tier", "full")
_KERNELS = ("6.12", "7.3", "6.1", "6.1-bpf-iter", "6.1-byte-status", "6.1-two-pages", "7.2")


class Cost(Struct, frozen=True):
    """What a command took, with its descendants.

    ``guest_cpu_s`` is the part of ``cpu_s`` that QEMU took, as last sampled; ``memory_mb`` is the
    most memory at a time (PSS).
    """

    seconds: float
    cpu_s: float
    guest_cpu_s: float
    memory_mb: float


def _runs() -> Mapping[str, Mapping[int, tuple[str, ...]]]:
    """Arguments of `uevt run` by what grows, and by how much there is of it."""
    one = ("--kernel", "6.12", *_SOME)
    return {
        "cases": {n: (*one, "--guests", "2", "--repeat", str(n)) for n in (1, 2, 4, 7, 10)},
        "guests": {n: (*one, "--guests", str(n), "--repeat", "4") for n in (1, 2, 3, 4)},
        "kernels": {
            n: (*_SOME, *(word for k in _KERNELS[:n] for word in ("--kernel", k)))
            for n in (1, 2, 4, 7)
        },
    }


def cost(*words: str) -> Cost:
    """Run `uevt run` with these words.  Raises RuntimeError unless the verdict is PASS."""
    with tempfile.TemporaryDirectory() as directory:
        began, most, guests = time.perf_counter(), 0, dict[int, float]()
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
            processes = _with_descendants(pid)
            most = max(most, sum(map(_memory, processes)))
            for each in processes:
                guests[each.pid] = max(guests.get(each.pid, 0.0), _qemu_cpu_s(each))
            time.sleep(_SAMPLE_S)
    if status:
        code = os.waitstatus_to_exitcode(status)
        raise RuntimeError(f"uevt run {' '.join(words)} ended with {code}")
    cpu = used.ru_utime + used.ru_stime
    return Cost(seconds, cpu, sum(guests.values()), most / 1e6)


def _with_descendants(pid: int) -> Sequence[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _memory(process: psutil.Process) -> int:
    """Proportional set size in bytes; a process that ended has none."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def _qemu_cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
        return times.user + times.system if process.name().startswith("qemu") else 0.0
    except psutil.Error:
        return 0.0


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
