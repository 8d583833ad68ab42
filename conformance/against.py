"""Comparing runs from the command line: a patched kernel with the same one unpatched."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from conformance.plugin.target import MODEL, Misplaced, request_of
from conformance.report.compare import Comparison, compare
from conformance.report.errors import ReportError
from conformance.report.exits import Ending, ExitStyle, exit_code
from conformance.report.page import render_page
from conformance.report.record import RunRecord
from conformance.report.results import NAME, read_results
from conformance.report.rundir import default_directory, find_run, link_latest, unused
from conformance.report.text import use_colour

# Runs a session of these options on a kernel into a directory, what it says going to a file.
Session = Callable[[Namespace, str | None, str, IO[str] | None], int]


def kernel_id(options: Namespace, kernel: str | None) -> str:
    """The id of what the options make of a kernel of the catalog.  Raises KernelsError."""
    if kernel == MODEL:
        return MODEL
    return request_of(_with(options, kernel=kernel)).entry().kernel_id


def judge(options: Namespace, kernel: str | None, session: Session, root: Path) -> list[int]:
    """Run a kernel without its patches and with them, and say what they change.

    Returns the exit codes that decide.  Raises Misplaced when there are no patches.
    """
    if not options.patch or kernel == MODEL:
        mend = "add --kernel 6.12 --patch FILE, or compare two runs with uevt compare"
        raise Misplaced("--against base is for a kernel with --patch", mend)
    style = ExitStyle(options.exit_style)
    # KTAP is about the patched kernel.
    plain = _with(options, patch=[], ktap=None)
    base, new = (_directory(each, kernel, root) for each in (plain, options))
    sys.stderr.write(f"uevt: without patches first, into {base}\n")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        code = session(plain, kernel, str(base), said)
        if code == exit_code(Ending.INTERRUPTED, style) or not (base / NAME).is_file():
            said.seek(0)
            sys.stdout.write(said.read())
            return [code]
    code = session(options, kernel, str(new), None)
    if code == exit_code(Ending.INTERRUPTED, style) or not (new / NAME).is_file():
        return [code]
    if options.out is None:
        for directory in (base, new):
            link_latest(directory)
    comparison = compare(read_results(base / NAME), read_results(new / NAME))
    sys.stdout.write("\n")
    show(comparison)
    return [code, exit_code(Ending.UNEXPECTED, style)] if comparison.regression else [code]


def show_runs(base: Path, new: Path, *, as_json: bool) -> int:
    """`uevt compare`: 1 for a regression, 3 where a run gave no verdict.  Raises ReportError."""
    comparison = compare(_verdict_of(base), _verdict_of(new))
    if as_json:
        sys.stdout.write(json.dumps(comparison.to_json(), indent=1) + "\n")
    else:
        show(comparison)
    if comparison.regression:
        return exit_code(Ending.UNEXPECTED)
    return exit_code(Ending.PASS if comparison.decided else Ending.HOST)


def show(comparison: Comparison) -> None:
    """Print the page."""
    colour = use_colour(sys.stdout, os.environ)
    sys.stdout.write(render_page(comparison, colour=colour))


def _verdict_of(run: Path) -> RunRecord:
    path = find_run(run)
    record = read_results(path)
    if record.head.self_check:
        raise ReportError(path, "is a self-check, which is about no kernel", "name another run")
    return record


def _directory(options: Namespace, kernel: str | None, root: Path) -> Path:
    name = kernel_id(options, kernel)
    if options.out is not None:
        return Path(options.out) / name
    return unused(default_directory(root, name, datetime.now(UTC)))


def _with(options: Namespace, **others: object) -> Namespace:
    return Namespace(**{**vars(options), **others})
