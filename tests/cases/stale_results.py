"""Print the cases whose line in docs/results is older than their program.

``python -m tests.cases.stale_results [KERNEL…]``; the programs are those of a run on the model.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from conformance.abi.profile import profile_for
from conformance.ops.digest import digest
from conformance.results.summary import Summary
from tests.cases.variants import all_variants, honest

DIRECTORY = Path(__file__).resolve().parents[2] / "docs" / "results"


def stale(record: Summary) -> list[str]:
    """The ids of one kernel that ``make matrix`` would change."""
    profile = profile_for(record.profile, base=record.release)
    return record.stale(
        {
            variant.id: digest(honest(variant, profile=profile).lockstep.program)
            for variant in all_variants()
            if variant.case.applies(profile)
        }
    )


def main(kernels: Sequence[str]) -> None:
    """Print kernel and id, one pair a line."""
    for path in sorted(DIRECTORY.glob("*.json")):
        if not kernels or path.stem in kernels:
            for id in stale(Summary.read(path)):
                sys.stdout.write(f"{path.stem} {id}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
