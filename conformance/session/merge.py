"""Join the shards of a run into one run: each case once, none missing."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from conformance.cases.surfaces import listed
from conformance.results import journal, kernel_config
from conformance.results.case_result import CaseResult
from conformance.results.directory import claim
from conformance.results.errors import ReportError
from conformance.results.frozen import FrozenShare
from conformance.results.journal import JournalWriter
from conformance.results.outcome import Outcome
from conformance.results.run import RunHead, RunRecord
from conformance.results.shard import digest_of_ids, path
from conformance.results.stored_runs import Run
from conformance.session.controller.record_files import write_page, write_record_files
from conformance.session.controller.resume import require_same_run

_SHARD = "--shard="
_CONSOLE = "console.log"
_HINT = "give each shard of one selection once: 1/3, 2/3 and 3/3"


def merged(runs: Sequence[Run], blamed: Mapping[str, CaseResult] | None = None) -> RunRecord:
    """One run of all shards; ``blamed`` are results of cases that no shard could run.

    Raises ReportError for runs that are no shards, shards of different runs, and a missing or
    doubled shard.
    """
    blamed = blamed or {}
    _require_one_run(runs)
    _require_every_case_once(runs, blamed)
    records = [run.record for run in runs]
    cases: dict[str, CaseResult] = dict(blamed)
    for result in itertools.chain.from_iterable(record.cases for record in records):
        known = cases.get(result.id)
        # A result that is not of a selected case: one other than PASS stands, as in any run.
        if known is None or known.outcome is Outcome.PASS:
            cases[result.id] = result
    shards = [each for record in records for each in record.shards]
    shards.sort(key=lambda each: path(each.part))
    not_built = all(record.not_built for record in records)
    some = any(record.not_built for record in records) and not not_built
    contradictions = {each.switch: each for record in records for each in record.contradictions}
    return RunRecord(
        head=_head([record.head for record in records]),
        cases=tuple(sorted(cases.values(), key=lambda each: listed(each.id))),
        selected=len(cases) + sum(record.missing for record in records),
        # The shards ran side by side.
        duration_s=max(record.duration_s for record in records),
        note="some shards of this kernel have user_events and others do not"
        if some
        else _note(runs),
        not_built=not_built,
        contradictions=tuple(each for _, each in sorted(contradictions.items())),
        functions=records[0].functions,
        frozen=_frozen([record.frozen for record in records if record.frozen is not None]),
        shards=tuple(shards),
    )


def write_merged(
    runs: Sequence[Run],
    directory: Path,
    blamed: Mapping[str, CaseResult] | None = None,
    *,
    force: bool = False,
) -> RunRecord:
    """Write the merged run into a directory, with the files of any run.

    Raises ReportError, also for a directory that is not empty or has one of the shards, and
    OSError.
    """
    record = merged(runs, blamed)
    if any(Path(run.place).resolve() == directory.resolve() for run in runs):
        raise ReportError(directory, "has one of the shards", "name another --out")
    claim(directory, force=force)
    selected = {id for shard in record.shards for id in shard.cases}
    # A result that is missing can be had by --resume.
    with JournalWriter(directory / journal.NAME, sync=False) as writer:
        writer.begin(record.head)
        writer.plan(len(selected), record.functions, record.shards)
        for each in record.contradictions:
            writer.contradiction(each)
        for case in record.cases:
            (writer.case if case.id in selected else writer.extra)(case)
        writer.end(record.note)
        _copy_files(runs, directory)
        write_record_files(record, directory)
        with suppress(ImportError):
            write_page(record, directory)
    return record


def _require_one_run(runs: Sequence[Run]) -> None:
    for run in runs:
        if len(run.record.shards) != 1:
            what = "is a merged run" if run.record.shards else "is no shard"
            raise ReportError(Path(run.place), what, "name runs of uevt run --shard")
    first = runs[0].record
    for run in runs[1:]:
        was, now, place = _plain(first.head), _plain(run.record.head), Path(run.place)
        try:
            require_same_run(was, now, place)
        except ReportError as error:
            what = str(error).partition("would resume as another run: ")[2]
            raise ReportError(place, f"is a shard of another run: {what}", _HINT) from error
        for name, one, other in (
            ("options were", _options(was), _options(now)),
            ("--fail-on was", was.fail_on, now.fail_on),
            ("selection was", *(each.shards[0].sha256[:12] for each in (first, run.record))),
        ):
            if one != other:
                what = f"is a shard of another run: {name} {one} and is {other}"
                raise ReportError(place, what, _HINT)


def _options(head: RunHead) -> str:
    """The options by name: a file may have another path on another machine."""
    return " ".join(word.partition("=")[0] for word in head.asked) or "none"


def _require_every_case_once(runs: Sequence[Run], blamed: Iterable[str]) -> None:
    places: dict[str, Run] = {}
    for run in runs:
        (shard,) = run.record.shards
        for id in shard.cases:
            if (other := places.setdefault(id, run)) is not run:
                (theirs,) = other.record.shards
                again = f"shard {shard.part} has cases of shard {theirs.part} in {other.place}"
                if theirs.part == shard.part:
                    again = f"shard {shard.part} is given twice, also as {other.place}"
                raise ReportError(Path(run.place), again, _HINT)
    (first,) = runs[0].record.shards
    found = {*places, *blamed}
    if digest_of_ids(found) == first.sha256:
        return
    parts = {run.record.shards[0].part for run in runs}
    number = path(first.part)[0][1]
    lost = [part for n in range(number) if (part := f"{n + 1}/{number}") not in parts]
    missing = f"missing {', '.join(lost)}" if lost else "other cases"
    what = f"{len(found)} of {first.whole} cases: {missing}"
    raise ReportError(Path(runs[0].place), f"the shards have {what}", _HINT)


def _plain(head: RunHead) -> RunHead:
    """The head of the run that this is a shard of."""
    return replace(head, asked=tuple(word for word in head.asked if not word.startswith(_SHARD)))


def _head(heads: Sequence[RunHead]) -> RunHead:
    guests = [head.host["guests"] for head in heads if head.host.get("guests")]
    # A guest that was booted says why, the others were restored.
    host = {**heads[0].host, **({"guests": max(guests, key=len)} if guests else {})}
    host.pop("resumed", None)
    return replace(_plain(heads[0]), host=host, started=min(head.started for head in heads))


def _note(runs: Sequence[Run]) -> str:
    """The notes of the shards; of one that all have, one."""
    notes = {run.record.shards[0].part: run.record.note for run in runs}
    if len(set(notes.values())) == 1:
        return next(iter(notes.values()))
    return "; ".join(f"shard {part}: {note}" for part, note in notes.items() if note)


def _frozen(shares: Sequence[FrozenShare]) -> FrozenShare | None:
    if not shares:
        return None
    other = tuple(sorted(id for share in shares for id in share.other_programs))
    return replace(shares[0], judged=sum(each.judged for each in shares), other_programs=other)


def _copy_files(runs: Sequence[Run], directory: Path) -> None:
    """Copy the configuration, and join the consoles."""
    places = [Path(run.place) for run in runs]
    for place in places:
        if (place / kernel_config.NAME).is_file():
            shutil.copyfile(place / kernel_config.NAME, directory / kernel_config.NAME)
            break
    with (directory / _CONSOLE).open("wb") as whole:
        for run, place in zip(runs, places, strict=True):
            with suppress(FileNotFoundError):
                whole.write(f"=== shard {run.record.shards[0].part} ===\n".encode())
                whole.write((place / _CONSOLE).read_bytes())
