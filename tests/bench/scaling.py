"""Simulate `uevt matrix` with measured costs.

``python -m tests.bench.scaling`` refreshes docs/scale.svg and prints the table of docs/scale.md.
The rules are those of conformance.cli.matrix.controller: builds first, one at a time while shards
wait; the controller does one thing at a time, and hands out nothing meanwhile.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tests.bench.plot import plot

KERNELS = 200
WORKERS = (1, 2, 4, 8, 16, 32, 64)
PICTURE = Path(__file__).parents[2] / "docs" / "scale.svg"

# Seconds of one core, as measured: a build of 6.12, all cases of the full tier (the guests' time in
# docs/performance.md), what a shard takes besides its cases.
BUILD_S = 450.0
CASES_S = 147.0
SHARD_S = 5.0
# Of a kernel, by the durations in the suite.
SHARDS = 4
# The part of the work that builds are.
BUILDS = BUILD_S / (BUILD_S + CASES_S + SHARDS * SHARD_S)
# Seconds of the controller: a shard's result, a kernel's merge.
ADD_S = 0.32
MERGE_S = 1.04
# Bytes: image, configuration and modules; the results of a kernel.
KERNEL_B = 4.5e6
RESULTS_B = 5.0e6


class Costs(Struct, frozen=True):
    """What a simulated matrix took; ``busy`` is the share of the controller's time."""

    workers: int
    seconds: float
    efficiency: float
    busy: float
    moved: float


def simulated(workers: int) -> Costs:
    """A matrix on so many workers with a core each."""
    length = CASES_S / SHARDS + SHARD_S
    # Events: end of a task on a worker; "" is a build.
    events: list[tuple[float, int, int, bool]] = []
    builds, building = list(range(KERNELS)), 0
    waiting: list[int] = []
    left = [SHARDS] * KERNELS
    free = list(range(workers))
    has: set[tuple[int, int]] = set()
    now = busy = moved = 0.0
    work = KERNELS * (BUILD_S + SHARDS * length)
    while builds or waiting or events:
        while free and (builds or waiting):
            if builds and (not building or not waiting):
                kernel, worker = builds.pop(), free.pop()
                building += 1
                has.add((worker, kernel))
                heapq.heappush(events, (now + BUILD_S, worker, kernel, True))
            elif waiting:
                kernel = waiting.pop()
                # dask prefers a worker that has the kernel.
                worker = next((each for each in free if (each, kernel) in has), free[-1])
                free.remove(worker)
                if (worker, kernel) not in has:
                    has.add((worker, kernel))
                    moved += KERNEL_B
                heapq.heappush(events, (now + length, worker, kernel, False))
            else:
                break
        end, worker, kernel, built = heapq.heappop(events)
        cost = 0.0
        if built:
            building -= 1
            waiting += [kernel] * SHARDS
        else:
            left[kernel] -= 1
            moved += RESULTS_B / SHARDS
            cost = ADD_S + (0.0 if left[kernel] else MERGE_S)
        now = max(now, end) + cost
        busy += cost
        free.append(worker)
    return Costs(workers, now, work / (now * workers), busy / now, moved)


def table(found: Sequence[Costs]) -> str:
    """The rows of docs/scale.md."""
    rows = ["| workers | hours | efficiency | controller busy | moved |", "|---|---|---|---|---|"]
    rows += [
        f"| {each.workers} | {each.seconds / 3600:.1f} | {each.efficiency:.0%} | {each.busy:.0%} "
        f"| {each.moved / 1e9:.1f} GB |"
        for each in found
    ]
    return "\n".join(rows) + "\n"


def picture(found: Sequence[Costs]) -> str:
    """Speed-up over one worker as SVG."""
    points = [(each.workers, found[0].seconds / each.seconds) for each in found]
    title = "Speed-up of uevt matrix by number of workers, simulated"
    up = "times as fast as one worker (gray: ideal)"
    return plot(title, "workers", up, {"simulated": points}, logarithmic=True)


def main() -> None:
    """Write the picture, print the table."""
    found = [simulated(number) for number in WORKERS]
    PICTURE.write_text(picture(found), encoding="utf-8")
    print(table(found))  # noqa: T201


if __name__ == "__main__":
    main()
