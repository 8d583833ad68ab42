"""`uevt expectations`: which known deviations are of no use, and what runs suggest for them."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from conformance.abi.switches import SWITCHES
from conformance.expectations import loader
from conformance.expectations.condition import Condition, KernelContext
from conformance.expectations.errors import ExpectationError
from conformance.expectations.loader import Expectation, Expectations
from conformance.expectations.proposal import Kernel, propose
from conformance.expectations.review import Finding, pointless, unused
from conformance.report.known_deviations import context_of, ran
from conformance.results.digest import same_kernel
from conformance.results.directory import find_run
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.results_json import read_results
from conformance.results.run import KernelFacts, RunRecord
from host.files import write_atomically
from host.text import one_line, wrapped
from kernels.catalog.entries import load_catalog
from kernels.catalog.flavours import names as flavours

ROOT = Path(__file__).parents[2]
WIDTH = 78
# Where tables go that are about nothing any file has.
_FILE = "user_events.toml"
_SERIES = re.compile(r"(\d+)\.(\d+)")
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")
# Kernels of which nothing follows for a release: patched, or with a module.
_CHANGED = "+"


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its verbs."""
    parser = commands.add_parser("expectations", help="the known deviations")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    check = verbs.add_parser("check", help="say which are of no use; 1 if there are any")
    told = "runs to hold them against"
    check.add_argument("run", nargs="*", type=Path, metavar="RUN", help=told)
    check.set_defaults(perform=_check)
    update = verbs.add_parser("update", help="propose what runs suggest, as a diff")
    told = "runs of one or several kernels"
    update.add_argument("run", nargs="+", type=Path, metavar="RUN", help=told)
    update.add_argument("--write", action="store_true", help="edit the files")
    update.set_defaults(perform=_update)


def _check(arguments: argparse.Namespace) -> int:
    """1 when an expectation is of no use.  Raises ReportError."""
    entries = _load()
    records = _records(arguments.run)
    catalog = _kernels_known(*(entry.when for entry in entries))
    found = list(pointless(entries, _case_ids(), catalog, _fixes()))
    found += unused(entries, [ran(record) for record in records])
    for each in found:
        sys.stdout.write("\n".join(_told(each)) + "\n")
    against = f" against {len(records)} run{'s' * (len(records) != 1)}" if records else ""
    said = f"{len(entries)} expectation{'s' * (len(entries) != 1)}{against}, {len(found)} of no use"
    sys.stdout.write(f"uevt: {said}\n")
    return exit_code(Ending.UNEXPECTED if found else Ending.PASS)


def _told(finding: Finding) -> list[str]:
    entry = finding.entry
    place = f"{entry.file.name}, expectation {entry.number}: {one_line(entry.case)}"
    why = f"{finding.problem.sentence}: {one_line(finding.where)}"
    return [place, *wrapped(why, indent=2, hanging=2, width=WIDTH)]


def _update(arguments: argparse.Namespace) -> int:
    """Raises ReportError, and OSError where a file cannot be written."""
    from conformance.expectations.edit import differences, edited

    entries = _load()
    kernels = _kernels(_records(arguments.run))
    proposal = propose(entries, kernels, _case_ids(), _kernels_known, _fixes())
    directory = loader.DIRECTORY
    files = {file: file.read_text(encoding="utf-8") for file in sorted(directory.glob("*.toml"))}
    try:
        after = edited(proposal, files, directory / _FILE)
    except ExpectationError as error:
        raise ReportError(error.file, str(error), error.hint) from error
    sys.stdout.writelines(differences(files, after, ROOT))
    if arguments.write:
        for file, text in after.items():
            write_atomically(file, text)
    for why, what in proposal.notes.items():
        told = f"uevt: left out, {one_line(why)}: {one_line(', '.join(what))}"
        sys.stderr.write("\n".join(wrapped(told, hanging=2, width=WIDTH)) + "\n")
    said = f"{len(proposal.added)} to add, {len(proposal.narrowed)} to narrow"
    said += f", {len(proposal.removed)} to take out"
    if proposal.added:
        said += "; the reason of each new one is for you to write"
    sys.stderr.write(f"uevt: expectations: {said}\n")
    return exit_code(Ending.PASS)


def _load() -> tuple[Expectation, ...]:
    try:
        return Expectations.load(loader.DIRECTORY).entries
    except ExpectationError as error:
        what = str(error).removeprefix(f"{error.file}: ")
        raise ReportError(error.file, what, error.hint) from error


def _records(paths: Sequence[Path]) -> list[RunRecord]:
    """The runs, each once.  Raises ReportError for one that says nothing of a kernel."""
    found = {}
    for path in paths:
        file = find_run(path)
        record = read_results(file)
        if record.head.self_check or record.not_built:
            what = "a self-check" if record.head.self_check else "a kernel without user_events"
            raise ReportError(path, f"is of {what}", "name another run")
        found[file.resolve()] = record
    return list(found.values())


def _kernels(records: Sequence[RunRecord]) -> list[Kernel]:
    """Runs by what they judged."""
    groups: list[tuple[KernelFacts, list[RunRecord]]] = []
    for record in records:
        facts = record.head.kernel
        group = next((each for each in groups if same_kernel(each[0], facts)), None)
        if group is None:
            groups.append((facts, [record]))
        else:
            group[1].append(record)
    return [
        Kernel(
            f"{ran(runs[0]).kernel}{_number(groups, facts)}",
            tuple(map(ran, runs)),
            _CHANGED in facts.id,
        )
        for facts, runs in groups
    ]


def _number(groups: Sequence[tuple[KernelFacts, list[RunRecord]]], facts: KernelFacts) -> str:
    """What tells a build from others of its name."""
    same = [each for each, _ in groups if (each.id, each.release) == (facts.id, facts.release)]
    return f" #{same.index(facts) + 1}" if len(same) > 1 else ""


def _case_ids() -> set[str]:
    """The ids of all cases: functions and variants."""
    # Importing all cases takes a while, and other commands do without.
    from conformance.cases.discovery import case_modules
    from conformance.report.specification.page import surfaces

    sentences = [
        sentence
        for surface in surfaces(case_modules())
        for chapter in surface.chapters
        for sentence in chapter.sentences
    ]
    ids = {sentence.case.id for sentence in sentences}
    return ids | {f"{each.case.id}.{variant}" for each in sentences for variant in each.variants}


def _fixes() -> dict[str, str]:
    """Titles of commits, and the switches that they turn on."""
    return {switch.commit: switch.name for switch in SWITCHES if switch.since is not None}


def _kernels_known(*conditions: Condition) -> list[KernelContext]:
    """What the catalog has, at all releases between which a condition may change its mind."""
    return list(_contexts(conditions))


def _contexts(conditions: Iterable[Condition]) -> Iterator[KernelContext]:
    """Kernels of the catalog: of each series the releases at which any answer may change."""
    asked = {each.value for one in conditions for each in one.comparisons}
    entries = load_catalog().entries.values()
    series = {entry.name: _series(entry.of or entry.name) for entry in entries}
    # What has no number before it is had is newer than all others.
    major, minor = max(found for found in series.values() if found)
    for entry in entries:
        for release in sorted(_releases(series[entry.name] or (major, minor + 1), asked)):
            text = ".".join(map(str, release))
            for flavour in ("", *flavours()):
                id = entry.name + (f"~{flavour}" if flavour else "")
                yield context_of(KernelFacts(id, text, entry.abi_for(text)))


def _series(name: str) -> tuple[int, int] | None:
    found = _SERIES.match(name)
    return (int(found[1]), int(found[2])) if found else None


def _releases(series: tuple[int, int], asked: set[str]) -> set[tuple[int, int, int]]:
    major, minor = series
    numbers = {0, 1, 9999}
    for value in asked:
        match = _RELEASE.fullmatch(value)
        if match and (int(match[1]), int(match[2])) == series:
            numbers |= {max(0, int(match[3]) + step) for step in (-1, 0, 1)}
    for switch in SWITCHES:
        if series in switch.backports:
            numbers |= {switch.backports[series] + step for step in (-1, 0)}
    return {(major, minor, number) for number in numbers}
