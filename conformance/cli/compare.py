"""`uevt compare`: differences between two runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from conformance.cli.output import print_json
from conformance.report.compare.compare import Comparison, Options, compare
from conformance.report.compare.markdown import render_markdown
from conformance.report.compare.text import render_page
from conformance.results import kernel_config
from conformance.results.directory import LATEST
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.outcome import Level
from conformance.results.results_json import NAME, read_results
from conformance.results.run import RunRecord, same_kernel
from conformance.results.stored_outcomes import RunOutcomes, read_outcomes
from conformance.results.stored_runs import find_run, require_kernel, runs_below
from host.text import one_line, use_colour
from kernels import kconfig

# The newest runs of a kernel that are read to find flaky cases.
_MOST_RUNS = 100


class Side(Struct, frozen=True):
    """One kernel: the run to compare, and other runs of the same build."""

    path: Path
    record: RunRecord
    others: tuple[RunOutcomes, ...] = ()


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    for name, text in (("base", "before"), ("new", "after")):
        about = f"{text}: a directory of results, or of several runs of one kernel"
        add(name, type=Path, metavar=name.upper(), help=about)
        about = f"another run of the kernel of {name.upper()} (repeatable)"
        several: dict[str, Any] = {"action": "append", "default": [], "dest": f"more_{name}"}
        add(f"--{name}", type=Path, metavar="RUN", help=about, **several)
    about = "weakest level at which worse is a regression (default: contract)"
    levels = [level.value for level in Level]
    add("--fail-on", choices=levels, default=Level.CONTRACT.value, help=about)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown, for a code review")
    parser.set_defaults(perform=_perform)


def _perform(arguments: argparse.Namespace) -> int:
    """1 for a regression, 3 for a run without a verdict.  Raises ReportError."""
    base = side(arguments.base, arguments.more_base)
    new = side(arguments.new, arguments.more_new)
    comparison = compared(base, new, Level(arguments.fail_on))
    if arguments.json:
        print_json(comparison.to_json())
    elif arguments.markdown:
        sys.stdout.write(render_markdown(comparison))
    else:
        show(comparison)
    if comparison.regression:
        return exit_code(Ending.UNEXPECTED)
    return exit_code(Ending.PASS if comparison.decided else Ending.HOST)


def show(comparison: Comparison, printed: Collection[str] = ()) -> None:
    """Print the page, without the evidence of cases that were ``printed`` before."""
    colour = use_colour(sys.stdout, os.environ)
    sys.stdout.write(render_page(comparison, colour=colour, printed=printed))


def compared(base: Side, new: Side, fail_on: Level) -> Comparison:
    """Compare two kernels with their configurations."""
    options = _options(base, new)
    return compare(base.record, new.record, base.others, new.others, options, fail_on)


def side(path: Path, more: Sequence[Path] = ()) -> Side:
    """The runs in ``path``, a run or a directory of runs of one kernel, and in ``more``.

    The run of ``latest``, else the newest, is compared.  Raises ReportError for a path without a
    run, or with runs of several kernels.
    """
    stored = _stored_runs(path)
    main = _main(path, stored)
    record = read_results(main)
    require_kernel(record, main)
    kernel = record.head.kernel
    # Another revision of the suite may judge differently.
    alike = [each for each in stored if each.head.suite == record.head.suite]
    others = [each for each in alike if same_kernel(each.head.kernel, kernel)]
    for another in more:
        outcomes = read_outcomes(find_run(another))
        if not same_kernel(outcomes.head.kernel, kernel):
            what = f"is of another kernel or build than {one_line(str(path))}"
            raise ReportError(another, what, "compare the two kernels, or omit this run")
        others.append(outcomes)
    taken = {each.path.resolve(): each for each in others if each.verdict is not None}
    taken.pop(main.resolve(), None)
    return Side(main, record, tuple(taken.values()))


def _stored_runs(path: Path) -> list[RunOutcomes]:
    """The newest runs in a directory; unreadable ones are reported and ignored."""
    if path.is_file() or (path / NAME).is_file():
        return []
    newest = sorted(runs_below(path), key=lambda run: run.stat().st_mtime, reverse=True)
    found = []
    for run in newest[:_MOST_RUNS]:
        try:
            found.append(read_outcomes(run))
        except ReportError as error:
            sys.stderr.write(f"uevt: ignored: {one_line(str(error))}\n")
    return found


def _main(path: Path, stored: Sequence[RunOutcomes]) -> Path:
    """The run to compare."""
    judged = [each for each in stored if each.verdict is not None]
    one = all(same_kernel(judged[0].head.kernel, each.head.kernel) for each in judged)
    if not judged or not one or (path / LATEST / NAME).is_file():
        return find_run(path)
    return max(judged, key=lambda each: each.head.started).path


def _options(base: Side, new: Side) -> Options | None:
    """The options that differ, None if a configuration is unknown."""
    before, after = _configuration(base), _configuration(new)
    if before is None or after is None:
        return None
    was, now = kconfig.values(before), kconfig.values(after)
    pairs = {
        name: (was.get(name, kconfig.NOT_SET), now.get(name, kconfig.NOT_SET))
        for name in kconfig.changed(before, after)
    }
    # An option that one configuration does not mention is off in both.
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _configuration(of: Side) -> str | None:
    return kernel_config.kept(of.path.parent, of.record.head.kernel.config_sha256)
