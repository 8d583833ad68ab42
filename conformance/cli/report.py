"""`uevt report`: several runs side by side, as HTML, Markdown or text."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from msgspec.structs import replace

from conformance.cases.discovery import all_cases
from conformance.cli.output import write
from conformance.report.matrix.findings import read_findings
from conformance.report.matrix.html import render_html
from conformance.report.matrix.markdown import render_markdown
from conformance.report.matrix.table import matrix
from conformance.report.matrix.text import render_text
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.stored_runs import Run, read_runs
from host.text import use_colour
from kernels.kconfig import values
from kernels.store.store import Store


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    about = "a directory of results, or of several runs"
    add("runs", nargs="+", type=Path, metavar="RUN", help=about)
    add("--html", type=Path, metavar="FILE", help="write an HTML page (- for standard output)")
    add("--markdown", type=Path, metavar="FILE", help="write Markdown (- for standard output)")
    parser.set_defaults(perform=_report)


def _report(arguments: argparse.Namespace) -> int:
    """Always 0: the verdicts were the exit codes of the runs."""
    html, markdown = arguments.html, arguments.markdown
    if html and markdown and os.path.realpath(html) == os.path.realpath(markdown):
        raise ReportError(html, "cannot take both forms", "give one of them another file")
    runs = [replace(run, options=_options(run)) for run in read_runs(arguments.runs)]
    found = matrix(runs, {case.id: case for case in all_cases()})
    findings = read_findings()
    if html is not None:
        write(render_html(found, findings), html)
    if markdown is not None:
        write(render_markdown(found, findings), markdown)
    if html is None and markdown is None:
        colour = use_colour(sys.stdout, os.environ)
        sys.stdout.write(render_text(found, colour=colour))
    return exit_code(Ending.PASS)


def _options(run: Run) -> dict[str, str]:
    """The kernel's configuration, if the build store still has it."""
    digest = run.record.head.kernel.config_sha256
    return values((Store().configuration(digest) if digest else None) or "")
