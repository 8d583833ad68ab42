"""`uevt export`: runs in the formats of other programs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from conformance.cli.output import unwritable, write
from conformance.report.export import github
from conformance.report.export.junit import render_junit
from conformance.report.export.kcidb import ID, ORIGIN, Sender, render_kcidb
from conformance.report.export.kselftest import render_kselftest
from conformance.report.export.ktap import render_ktap
from conformance.report.export.tmt import render_tmt
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.results_json import read_results
from conformance.results.run import RunRecord
from conformance.results.stored_runs import find_run, require_kernel

# Formats without options.
_RENDERERS = {"ktap": render_ktap, "kselftest": render_kselftest, "junit": render_junit}
FORMATS = (*_RENDERERS, "kcidb", "github", "tmt")
"""The output formats."""
_HINT = "name another --out"
# Options of KCIDB.
_SENDER = ("origin", "files", "build")
# The formats that have an option.
_ONLY_OF = {"origin": ("kcidb",), "files": ("kcidb", "tmt"), "build": ("kcidb",)}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("run", nargs="+", type=Path, metavar="RUN", help="a directory of results")
    add("--format", required=True, choices=FORMATS, help="the format")
    add("--out", type=Path, metavar="FILE", help="output file (default: standard output)")
    declare_sender(parser, "kcidb: ", "; tmt: the directory in TMT_TEST_DATA")
    parser.set_defaults(perform=_export)


def declare_sender(parser: argparse.ArgumentParser, of: str = "", more: str = "") -> None:
    """Declare the options about the sender of a KCIDB document."""
    add = parser.add_argument
    add("--origin", metavar="NAME", help=f"{of}the name of your CI system")
    add("--files", metavar="URL", help=f"{of}where the files of the run will be stored{more}")
    add("--build", metavar="ID", help=f"{of}the tested build, if KCIDB has it")


def _export(arguments: argparse.Namespace) -> int:
    """0 whatever the verdict: that was the exit code of the run.  Raises ReportError."""
    form: str = arguments.format
    for name, forms in _ONLY_OF.items():
        if form not in forms and getattr(arguments, name) is not None:
            raise ReportError(Path(f"--{name}"), f"is not an option of {form}", "omit it")
    if form == "github":
        _annotate(_read(arguments.run), arguments.out)
    else:
        write(_rendered(form, arguments), arguments.out, _HINT)
    return exit_code(Ending.PASS)


def _rendered(form: str, arguments: argparse.Namespace) -> str:
    if form == "kcidb":
        return _kcidb(arguments)
    if form == "tmt":
        return _tmt(arguments)
    return _RENDERERS[form](_read(arguments.run))


def _read(runs: Sequence[Path]) -> list[RunRecord]:
    records: dict[Path, RunRecord] = {}
    for run in runs:
        path = find_run(run).resolve()
        if path in records:
            raise ReportError(run, "is named twice", "name each run once")
        records[path] = read_results(path)
    return list(records.values())


def sender_of(arguments: argparse.Namespace) -> Sender:
    """The sender of a KCIDB document.  Raises ReportError."""
    origin, files, build = (getattr(arguments, name) or "" for name in _SENDER)
    if not ORIGIN.fullmatch(origin):
        what = f"{origin!r} is not a name" if origin else "is missing"
        hint = "name your CI system in a-z, 0-9 and _"
        raise ReportError(Path("--origin"), what, hint)
    if files and not _is_address(files):
        raise ReportError(Path("--files"), f"{files!r} is not a URL", "write https://…")
    if build and not ID.fullmatch(build):
        raise ReportError(Path("--build"), f"{build!r} is not an id", "write it as ORIGIN:REST")
    return Sender(origin, files, build)


def _kcidb(arguments: argparse.Namespace) -> str:
    sender = sender_of(arguments)
    if sender.build and len(arguments.run) > 1:
        raise ReportError(Path("--build"), "belongs to one run", "name one RUN")
    records = _read(arguments.run)
    for run, record in zip(arguments.run, records, strict=True):
        require_kernel(record, run)
    return render_kcidb(records, sender)


def _tmt(arguments: argparse.Namespace) -> str:
    files = arguments.files or ""
    place = PurePosixPath(files)
    if place.is_absolute() or ".." in place.parts or not files.isprintable():
        what = f"{files!r} is not a directory below TMT_TEST_DATA"
        raise ReportError(Path("--files"), what, "write it relative to that: --files uevt")
    return render_tmt(_read(arguments.run), str(place) if files else "")


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc) and text.isascii() and text.isprintable()


def _annotate(records: Sequence[RunRecord], out: Path | None) -> None:
    """Print the annotations, and append the step summary."""
    named = os.environ.get(github.SUMMARY_FILE)
    path = out or (Path(named) if named else None)
    for line in github.annotate(records):
        print(line)
    if path is None:
        print(f"uevt: no summary: set --out or {github.SUMMARY_FILE}", file=sys.stderr)
        return
    try:
        omitted = github.append_summary(path, records)
    except OSError as error:
        raise unwritable(path, error, _HINT) from error
    for record in omitted:
        left_out = f"the summary of {record.head.kernel.id} does not fit"
        print(f"uevt: {path}: {left_out}", file=sys.stderr)
