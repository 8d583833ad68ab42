"""`python -m tests.bench.orders`: run all cases in random orders, and compare them with their own.

Outcome, program and its beginning must be the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from conformance.results.results_json import NAME, read_results
from tests.bench.guests import finished_run


def _outcomes(*words: str) -> Mapping[str, tuple[str, ...]]:
    """Outcome, digest and course of each case by id."""
    with finished_run(*words) as (_, out):
        cases = read_results(out / NAME).cases
    return {each.id: (each.outcome, each.digest or "", each.course) for each in cases}


def main() -> int:
    """Print the cases that differ in each order; 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.orders")
    parser.add_argument("--kernel", default="6.12")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    arguments = parser.parse_args()
    words = "--kernel", arguments.kernel, "--tier", "full", "--quiet"
    own, found = _outcomes(*words), 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        shuffled = _outcomes(*words, "--shuffle", str(seed))
        differ = sorted(id for id in {**own, **shuffled} if own.get(id) != shuffled.get(id))
        found += len(differ)
        sys.stdout.write(f"seed {seed}: {len(shuffled)} cases, {len(differ)} differ\n")
        for id in differ:
            sys.stdout.write(f"  {id}: {own.get(id)}, {shuffled.get(id)}\n")
        sys.stdout.flush()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
