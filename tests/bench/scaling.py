"""Simulate `uevt matrix` with measured costs.

``python -m tests.bench.scaling`` refreshes docs/scale.svg and prints the table of docs/scale.md.
The rules are those of conformance.cli.matrix.controller: builds first, one at a time while shards
wait; the controller does one thing at a time, and hands out nothing meanwhile.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.cli.matrix.controller import CASES_IN_SHARD_S

KERNELS = 200
WORKERS = (1, 2, 4, 8, 16, 32, 64)
PICTURE = Path(__file__).parents[2] / "docs" / "scale.svg"

# Seconds of one core, as measured: a build of 6.12, all cases of the full tier, what a shard takes
# besides its cases.
BUILD_S = 450.0
CASES_S = 210.0
SHARD_S = 5.0
# Seconds of the controller: a shard's result, a kernel's merge.
ADD_S = 0.32
MERGE_S = 1.04
# Bytes: image, configuration and modules; the results of a kernel.
KERNEL_B = 4.5e6
RESULTS_B = 5.0e6


@dataclass(frozen=True, slots=True)
class Costs:
    """What a simulated matrix took; ``busy`` is the share of the controller's time."""

    workers: int
    seconds: float
    efficiency: float
    busy: float
    moved: float


def simulated(workers: int, kernels: int = KERNELS) -> Costs:
    """A matrix on so many workers with a core each."""
    shards = math.ceil(CASES_S / CASES_IN_SHARD_S)
    length = CASES_S / shards + SHARD_S
    # Events: end of a task on a worker; "" is a build.
    events: list[tuple[float, int, int, bool]] = []
    builds, building = list(range(kernels)), 0
    waiting: list[int] = []
    left = [shards] * kernels
    free = list(range(workers))
    has: set[tuple[int, int]] = set()
    now = busy = moved = 0.0
    work = kernels * (BUILD_S + shards * length)
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
            waiting += [kernel] * shards
        else:
            left[kernel] -= 1
            moved += RESULTS_B / shards
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
    """Speed-up over one worker, and the ideal, as SVG with logarithmic axes."""
    most = math.log2(found[-1].workers)

    def place(workers: float, speedup: float) -> str:
        across, up = math.log2(workers) / most, math.log2(speedup) / most
        return f"{50 + 400 * across:.0f},{260 - 240 * up:.0f}"

    one = found[0].seconds
    points = [place(each.workers, one / each.seconds) for each in found]
    ideal = [place(each.workers, each.workers) for each in (found[0], found[-1])]
    marks = "".join(
        f'<text x="{place(n, n).split(",")[0]}" y="278" text-anchor="middle">{n}</text>'
        f'<text x="44" y="{int(place(n, n).split(",")[1]) + 4}" text-anchor="end">{n}</text>'
        for n in (each.workers for each in found)
    )
    dots = "".join(f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="3"/>' for p in points)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 310"'
        ' font-family="sans-serif" font-size="11">\n'
        "<title>Speed-up of uevt matrix by number of workers, simulated</title>\n"
        '<rect width="480" height="310" fill="white"/>\n'
        '<path d="M50,20 V260 H450" fill="none" stroke="black"/>\n'
        f'<polyline points="{" ".join(ideal)}" fill="none" stroke="gray" stroke-dasharray="4"/>\n'
        f'<polyline points="{" ".join(points)}" fill="none" stroke="black" stroke-width="2"/>'
        f"{dots}\n"
        f"{marks}\n"
        '<text x="250" y="298" text-anchor="middle">workers</text>\n'
        '<text x="50" y="12">times as fast as one worker (dashed: ideal)</text>\n'
        "</svg>\n"
    )


def main() -> None:
    """Write the picture, print the table."""
    found = [simulated(number) for number in WORKERS]
    PICTURE.write_text(picture(found), encoding="utf-8")
    print(table(found))  # noqa: T201


if __name__ == "__main__":
    main()
