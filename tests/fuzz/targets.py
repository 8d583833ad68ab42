"""Everything that is fuzzed."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.target import Target
from tests.fuzz.targets_files import file_targets
from tests.fuzz.targets_guest import guest_targets
from tests.fuzz.targets_report import report_targets


def targets(scratch: Path) -> tuple[Target, ...]:
    """All targets; ``scratch`` is a directory for the files that they read."""
    return (*guest_targets(), *file_targets(scratch), *report_targets(scratch))
