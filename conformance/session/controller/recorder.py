"""Write the files of a run: the journal while it runs, then results, JUnit and KTAP."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from conformance.abi import calibration
from conformance.cases.surfaces import listed
from conformance.results import journal, kernel_config
from conformance.results.case_result import CaseResult
from conformance.results.contradiction import Contradiction
from conformance.results.directory import COVERAGE
from conformance.results.errors import ReportError
from conformance.results.frozen import FrozenList
from conformance.results.journal import JournalWriter
from conformance.results.outcome import Blame, Level, Outcome
from conformance.results.replay import INTERRUPTED, read_journal
from conformance.results.run import Functions, RunHead, RunRecord
from conformance.results.shard import Shard
from conformance.session.controller.record_files import write_record_files
from conformance.session.controller.resume import require_same_run
from conformance.session.controller.run_head import run_head
from conformance.session.target.gcov import COUNTERS, CountedObject, Coverage, NoCoverage, coverage
from conformance.session.target.target import Target
from host.files import TEMPORARY, sweep, write_atomically
from host.text import counted
from vm.snapshots import BOOTED, RESTORED

_NO_COUNTERS = "the kernel has to mount debugfs and be built with CONFIG_GCOV_KERNEL"
# Starts of a guest that need no explanation.
_PLAIN = (BOOTED, RESTORED)
CONSOLE = "console.log"
QEMU_LOG = "qemu.log"


class Recorder:
    """Writes one run into its directory, and continues a run that began there.

    Methods raise OSError for a full or failing disk.
    """

    def __init__(
        self,
        target: Target,
        directory: Path,
        words: tuple[str, ...] = (),
        fail_on: Level = Level.CONTRACT,
    ) -> None:
        """``words`` reproduce this run with `uevt run`.

        Raises ReportError for a journal that is locked, damaged, or of another run.
        """
        self.directory = directory
        self.head = run_head(target, words, fail_on)
        self._config = target.config
        self._started = time.monotonic()
        path = directory / journal.NAME
        self.journal = JournalWriter(path, sync=not target.is_model)
        try:
            self.before = read_journal(path)
            if self.before.head is not None:
                self._resume(self.before.head, target)
            # The journal ended with the last case.
            self.already_complete = self.before.ended and self.before.complete
            if not self.already_complete:
                self.journal.begin(self.head)
        except BaseException:
            self.journal.close()
            raise
        self._cases = dict(self.before.results)
        self._contradictions = dict(self.before.contradictions)
        self._functions = self.before.functions
        self._shards = self.before.shards
        self._not_built = ""
        if any(each.not_built for each in self._cases.values()):
            self.not_built(target.without_user_events)

    def _resume(self, head: RunHead, target: Target) -> None:
        require_same_run(head, self.head, self.directory)
        if target.counted:
            what = "cannot be resumed: the counters of its guests are lost"
            raise ReportError(self.directory, what, "start a new run: another --out")
        self.head = head
        if not (self.before.ended and self.before.complete):
            head.host["resumed"] = f"{self.before.parts} times" if self.before.parts > 1 else "once"
        sweep(self.directory)
        self.join_consoles()

    @property
    def results_so_far(self) -> list[CaseResult]:
        """Results so far, those that are not of selected cases included."""
        return list(self._cases.values())

    @property
    def ended(self) -> list[str]:
        """The ids of the selected cases with a result."""
        return [name for name in self._cases if name not in self.before.extra]

    def plan(self, left: int, functions: Functions, shards: tuple[Shard, ...] = ()) -> int:
        """Record that ``left`` cases remain, of these shards; the number of all.

        Raises ReportError if the journal has another number.
        """
        selected = len(self.ended) + left
        self._functions = self.before.functions or functions
        self._shards = self.before.shards or shards
        if self.before.selected is None:
            self.journal.plan(selected, functions, shards)
        elif self.before.selected != selected:
            what = f"selected {self.before.selected} cases, and would select {selected}"
            raise ReportError(self.directory, what, "start a new run: another --out")
        return selected

    def case(self, result: CaseResult) -> None:
        """A case ended.

        On a base that is not calibrated, a detail that differs is an error of the model first.
        """
        if result.outcome is Outcome.NOTE and calibration.warning(self.head.kernel.release):
            result = replace(result, blame=Blame.MODEL)
        self._cases[result.id] = result
        self.journal.case(result)

    def located(self, result: CaseResult) -> CaseResult:
        """The result with place and tier of the case whose aftermath it is."""
        case = self._cases.get(result.aftermath_of)
        if case is None:
            return result
        return replace(result, file=case.file, line=case.line, tier=case.tier)

    def other_result(self, result: CaseResult) -> bool:
        """Record a result that is not of a selected case; whether it is the first with its id.

        If several guests report it, a result other than PASS stands, and an unexpected one rather
        than an ERROR.
        """
        known = self._cases.get(result.id)
        replaced = known is None or known.outcome is Outcome.PASS
        if known is not None and known.outcome is Outcome.ERROR:
            replaced = result.unexpected
        if replaced:
            self._cases[result.id] = result
            self.journal.extra(result)
        return known is None

    def contradiction(self, found: Contradiction) -> None:
        """Record a contradicted switch once; every guest reports it."""
        if found.switch not in self._contradictions:
            self._contradictions[found.switch] = found
            self.journal.contradiction(found)

    def not_built(self, reason: str) -> None:
        """The kernel has no user_events."""
        self._not_built = reason

    def guest_started(self, how: str) -> None:
        """Record how a guest started; the first start that needs an explanation stands."""
        known = self.head.host.get("guests", "")
        if (how and not known) or (known in _PLAIN and how not in (*_PLAIN, "")):
            self.head.host["guests"] = how
            self.journal.guests(how)

    def discard(self) -> None:
        """Remove the files of this run, and its directory if it is empty then.

        A run that began earlier is kept.  Call again when the guests, which may still write, have
        ended.
        """
        self.journal.close()
        if self.before.head is not None:
            return
        for name in (journal.NAME, CONSOLE, QEMU_LOG):
            (self.directory / name).unlink(missing_ok=True)
        for guest in self.directory.glob("gw*"):
            shutil.rmtree(guest)
        with contextlib.suppress(OSError):
            self.directory.rmdir()

    def covered(self, counted: Sequence[CountedObject]) -> list[Coverage]:
        """Merge the counters of all guests into coverage.json; one item per object.

        Call when the guests have ended, before their consoles are joined.  Raises NoCoverage.
        """
        found = []
        for each in counted:
            files = sorted(self.directory.glob(f"**/*-{each.notes.stem}{COUNTERS}"))
            if not files:
                raise NoCoverage(f"no guest has counters of {each.source}", _NO_COUNTERS)
            found.append(coverage(each, files))
            for file in files:
                file.unlink()
        write_atomically(self.directory / COVERAGE, json.dumps([one.to_json() for one in found]))
        return found

    def join_consoles(self) -> None:
        """Append the consoles of all guests to console.log, one after another.

        Safe to interrupt and repeat at any point.
        """
        for guest in sorted(self.directory.glob("gw*/")):
            if (guest / CONSOLE).exists():
                self._join(guest)
            # Remove it at once: a later guest may have the same name.
            shutil.rmtree(guest.rename(self.directory / f"{TEMPORARY}{guest.name}"))

    def _join(self, guest: Path) -> None:
        whole, mark = self.directory / CONSOLE, guest / "joined-at"
        if not mark.exists():
            write_atomically(mark, str(whole.stat().st_size if whole.exists() else 0))
        with whole.open("a", errors="replace") as file:
            file.truncate(int(mark.read_text()))
            file.write(f"=== guest {guest.name} ===\n")
            file.write((guest / CONSOLE).read_text(errors="replace"))

    def finish(self, selected: int, note: str, frozen: FrozenList | None = None) -> RunRecord:
        """Write results, JUnit and KTAP, and end the journal."""
        missing = self._missing_from_journal()
        cases = tuple(
            self._cases[name] for name in sorted(self._cases.keys() - missing, key=listed)
        )
        # A result that is not in the journal counts as not run.  Ctrl-C may come just before it is.
        if missing and note != INTERRUPTED:
            note = f"the journal lacks {counted(len(missing), 'case')}, such as {min(missing)}"
        not_built = bool(self._not_built) and all(
            case.not_built for case in cases if case.had_a_guest
        )
        why = self._not_built
        if why and not not_built:
            why = "some guests of this kernel have user_events and others do not"
        # Without the pauses between its sessions.
        elapsed_s = self.before.elapsed_s
        elapsed_s += 0.0 if self.already_complete else time.monotonic() - self._started
        record = RunRecord(
            head=self.head,
            cases=cases,
            selected=selected,
            duration_s=round(elapsed_s, 3),
            note=note or why or calibration.warning(self.head.kernel.release),
            not_built=not_built,
            contradictions=tuple(each for _, each in sorted(self._contradictions.items())),
            functions=self._functions,
            frozen=None if frozen is None else frozen.share(cases),
            shards=self._shards,
        )
        if not self.already_complete:
            self.journal.end(note)
        if self._config is not None:
            kernel_config.keep(self._config, self.directory)
        # Unlocked last: until then no other process resumes this run.
        write_record_files(record, self.directory)
        self.journal.close()
        return record

    def _missing_from_journal(self) -> set[str]:
        """Ids of the results that the journal on disk lacks."""
        try:
            kept = read_journal(self.directory / journal.NAME).results
        except ReportError:
            kept = {}
        return {name for name, result in self._cases.items() if kept.get(name) != result}
