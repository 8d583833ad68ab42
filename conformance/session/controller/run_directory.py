"""Choose and claim the results directory of a run."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conformance.results import journal
from conformance.results.directory import claim, default_directory, require_empty, reserved
from conformance.session.target.target import Target


def results_directory(config: pytest.Config, target: Target) -> Path:
    """The directory of this run, claimed.

    Raises ReportError for a directory in use, OSError for a full disk.
    """
    if config.option.resume is not None:
        # Not by the link ``latest``, which would point to itself, or soon to another run.
        directory = Path(config.option.resume).resolve()
        claim(directory, resume=(directory / journal.NAME).exists())
    elif config.option.out is not None:
        directory = Path(config.option.out).absolute()
        claim(directory, force=bool(config.option.force))
    else:
        directory = reserved(default_directory(results_root(config), target.id, datetime.now(UTC)))
        claim(directory)
    return directory


def check_directory(option: Namespace) -> None:
    """Refuse a directory in use before a kernel is built, or a --ktap truncated, for it.

    Raises ReportError.
    """
    given = option.out if option.resume is None else option.resume
    if given is None:
        return
    directory = Path(given).absolute()
    record = directory / journal.NAME
    if option.resume is None and not option.force:
        require_empty(directory, has_force=True)
    # Any other error is that of `claim`.
    with suppress(OSError):
        if journal.is_in_use(record):
            raise journal.in_use(record)


def results_root(config: pytest.Config) -> Path:
    """The parent of result directories without --out."""
    return config.rootpath / "results"
