"""Finding runs: one, or all that are in a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from conformance.results.results_json import NAME

# results/matrix/6.12/20261120T174400Z/results.json, seen from results.
_DEEPEST = 3


def runs_below(directory: Path, depth: int = _DEEPEST) -> Iterator[Path]:
    """The results.json of every run in a directory or not far below it; links are not followed.

    What cannot be listed holds none.
    """
    if (directory / NAME).is_file():
        yield directory / NAME
        return
    if depth == 0:
        return
    try:
        with os.scandir(directory) as entries:
            names = sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        yield from runs_below(directory / name, depth - 1)
