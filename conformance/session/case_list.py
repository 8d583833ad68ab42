"""The cases that --only and --frozen name by their whole ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results.frozen import FrozenList


def frozen_list(config: pytest.Config) -> FrozenList | None:
    """The list of --frozen.  Raises ReportError."""
    name = config.option.frozen
    return None if name is None else FrozenList.read(Path(name))


def named_ids(config: pytest.Config) -> frozenset[str] | None:
    """The ids that --only and --frozen leave, None for all.  Raises ReportError."""
    listed = frozen_list(config)
    named = frozenset(config.option.only)
    if listed is None:
        return named or None
    ids = frozenset(listed.programs)
    return ids & named if named else ids
