"""`uevt expectations check`: find known deviations that no kernel, case or run needs."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.abi.switches import SWITCHES
from conformance.expectations import loader
from conformance.expectations.condition import KernelContext
from conformance.expectations.errors import ExpectationError
from conformance.expectations.loader import Expectation, Expectations
from conformance.expectations.review import Finding, pointless, unused
from conformance.report.known_deviations import context_of, evaluated
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.results_json import read_results
from conformance.results.run import KernelFacts, RunRecord
from conformance.results.stored_runs import find_run
from host.text import counted, one_line, wrapped
from kernels.catalog.catalog import load_catalog
from kernels.catalog.flavours import names as flavours

WIDTH = 78
_SERIES = re.compile(r"(\d+)\.(\d+)")
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("expectations", help="check the known deviations")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    about = "list unneeded expectations; exit 1 if there are any"
    check = verbs.add_parser("check", help=about, description=about)
    check.add_argument(
        "run", nargs="*", type=Path, metavar="RUN", help="results to check the expectations against"
    )
    check.set_defaults(perform=_check)


def _check(arguments: argparse.Namespace) -> int:
    """1 if an expectation is not needed.  Raises ReportError."""
    entries = _load()
    records = _records(arguments.run)
    found = list(pointless(entries, _case_ids(), list(_catalog_kernels(entries)), _fixes()))
    found += unused(entries, [evaluated(record) for record in records])
    for each in found:
        sys.stdout.write("\n".join(_described(each)) + "\n")
    against = f" against {counted(len(records), 'run')}" if records else ""
    number = counted(len(entries), "expectation")
    sys.stdout.write(f"uevt: {number} checked{against}, {len(found)} not needed\n")
    return exit_code(Ending.UNEXPECTED if found else Ending.PASS)


def _described(finding: Finding) -> list[str]:
    entry = finding.entry
    place = f"{entry.file.name}, expectation {entry.number}: {one_line(entry.case)}"
    why = f"{finding.problem.sentence}: {one_line(finding.where)}"
    return [place, *wrapped(why, indent=2, hanging=2, width=WIDTH)]


def _load() -> tuple[Expectation, ...]:
    try:
        return Expectations.load(loader.DIRECTORY).entries
    except ExpectationError as error:
        what = str(error).removeprefix(f"{error.file}: ")
        raise ReportError(error.file, what, error.hint) from error


def _records(paths: Sequence[Path]) -> list[RunRecord]:
    """Read each run once.  Raises ReportError for one that judged no kernel."""
    found = {}
    for path in paths:
        file = find_run(path)
        record = read_results(file)
        if record.head.self_check or record.not_built:
            what = "a self-check" if record.head.self_check else "a kernel without user_events"
            raise ReportError(path, f"is of {what}", "name another run")
        found[file.resolve()] = record
    return list(found.values())


def _case_ids() -> set[str]:
    """The ids of all cases, functions and variants."""
    # Importing all cases takes a while, and other commands do without.
    from conformance.cases.discovery import case_modules
    from conformance.report.specification.page import surfaces

    ids: set[str] = set()
    for surface in surfaces(case_modules()):
        for chapter in surface.chapters:
            for sentence in chapter.sentences:
                ids.add(sentence.case.id)
                ids |= {f"{sentence.case.id}.{variant}" for variant in sentence.variants}
    return ids


def _fixes() -> dict[str, str]:
    """Commit title to the switch that the commit turns on."""
    return {switch.commit: switch.name for switch in SWITCHES if switch.since is not None}


def _catalog_kernels(expectations: Sequence[Expectation]) -> Iterator[KernelContext]:
    """Kernels of the catalog, each series at every release where a `when` may change."""
    values = {each.value for one in expectations for each in one.when.comparisons}
    entries = load_catalog().entries.values()
    series = {entry.name: _series(entry.of or entry.name) for entry in entries}
    # An entry without a release number, such as linux-next, follows the newest release.
    major, minor = max(found for found in series.values() if found)
    for entry in entries:
        for release in sorted(_releases(series[entry.name] or (major, minor + 1), values)):
            text = ".".join(map(str, release))
            for flavour in ("", *flavours()):
                id = entry.name + (f"~{flavour}" if flavour else "")
                yield context_of(KernelFacts(id, text, entry.abi_for(text)))


def _series(name: str) -> tuple[int, int] | None:
    found = _SERIES.match(name)
    return (int(found[1]), int(found[2])) if found else None


def _releases(series: tuple[int, int], values: set[str]) -> set[tuple[int, int, int]]:
    major, minor = series
    numbers = {0, 1, 9999}
    for value in values:
        match = _RELEASE.fullmatch(value)
        if match and (int(match[1]), int(match[2])) == series:
            numbers |= {max(0, int(match[3]) + step) for step in (-1, 0, 1)}
    for switch in SWITCHES:
        if series in switch.backports:
            numbers |= {switch.backports[series] + step for step in (-1, 0)}
    return {(major, minor, number) for number in numbers}
