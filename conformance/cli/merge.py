"""`uevt merge`: one run of the shards that several machines judged."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from conformance.report.terminal.summary import render_summary
from conformance.results.exit_codes import ExitStyle, KernelOrigin, ending_of, exit_code
from conformance.results.run import RunRecord
from conformance.results.stored_runs import latest_runs, read_run
from conformance.session.merge import write_merged
from conformance.session.options import value_of
from host.text import use_colour

# Options that name a kernel of the user.
_OWN = ("--image=", "--tree=", "--config=", "--here")


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    about = "the results of a shard, or a directory of several"
    add("runs", nargs="+", type=Path, metavar="RUN", help=about)
    add("--out", type=Path, required=True, metavar="DIR", help="directory of the merged run")
    add("--force", action="store_true", help="replace the results in --out")
    styles = [style.value for style in ExitStyle]
    about = "exit codes of kselftest, autopkgtest, git bisect or LTP (default: as the shards)"
    add("--exit-style", choices=styles, help=about)
    parser.set_defaults(perform=_merge)


def _merge(arguments: argparse.Namespace) -> int:
    """The exit code that a run of all cases has.  Raises ReportError, OSError."""
    # A shard that is given twice is an error, and a self-check can be sharded.
    runs = [read_run(file) for place in arguments.runs for file in latest_runs(place)]
    record = write_merged(runs, arguments.out, force=arguments.force)
    for run in sorted(runs, key=lambda run: run.record.shards[0].part):
        (shard,) = run.record.shards
        seconds = f"{len(shard.cases)} cases in {run.record.duration_s:.1f} s"
        sys.stdout.write(f"shard {shard.part} on {shard.node}: {seconds}\n")
    colour = use_colour(sys.stdout, os.environ)
    sys.stdout.write(render_summary(record, directory=arguments.out, colour=colour))
    return code_of(record, arguments.exit_style)


def code_of(record: RunRecord, style: str | None = None) -> int:
    """The exit code of a run, in its own style or another."""
    asked = record.head.asked
    user = any(word.startswith(_OWN) for word in asked)
    return exit_code(
        ending_of(record.verdict, all_skipped=record.all_skipped),
        ExitStyle(style or value_of("--exit-style", asked) or ExitStyle.DEFAULT),
        origin=KernelOrigin.USER if user else KernelOrigin.CATALOG,
        require="--require" in asked,
    )
