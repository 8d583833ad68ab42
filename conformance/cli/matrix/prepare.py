"""Build a kernel and list its cases: a program of its own, which dies with its worker.

``python -m conformance.cli.matrix.prepare WORD…`` takes all options of a run, and prints JSON.
"""

from __future__ import annotations

import json
import sys

from conformance.cli.cases import select
from conformance.cli.matrix.kernel_spec import options_of
from conformance.session.target.target import resolve
from kernels.errors import KernelsError
from vm.errors import VmError


def main(words: list[str]) -> int:
    """Print the ids of the cases that a run with these options selects."""
    options = options_of(words)
    try:
        profile = resolve(options).profile
    except (KernelsError, VmError) as error:
        sys.stderr.write(f"uevt: {error}\n")
        return 3
    found = select(options.keyword or "", profile, options.tier)
    json.dump([id for each in found for id in each.ids], sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
