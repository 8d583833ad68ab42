"""What a run leaves behind: journal while it runs, results, JUnit and KTAP at its end."""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from conformance.outcome import CaseResult, Contradiction, Outcome
from conformance.plugin.coverage import COUNTERS, Counted, Coverage, NoCoverage, coverage
from conformance.plugin.target import Target
from conformance.report import journal, junit, ktap, results
from conformance.report.files import write_atomically
from conformance.report.journal import JournalWriter
from conformance.report.record import KernelFacts, RunHead, RunRecord
from conformance.report.runs import COVERAGE
from vm.states import BOOTED, RESTORED

_ROOT = Path(__file__).parents[2]
_GIT_SECONDS = 5.0
_NO_COUNTERS = "the kernel has to mount debugfs and be built with CONFIG_GCOV_KERNEL"
CONSOLE = "console.log"
QEMU_LOG = "qemu.log"


class Recorder:
    """Writes one run into its directory.  Methods raise OSError when the disk refuses."""

    def __init__(self, target: Target, directory: Path) -> None:
        self.directory = directory
        self.head = _head(target)
        self._started = time.monotonic()
        self._cases: dict[str, CaseResult] = {}
        self._contradictions: dict[str, Contradiction] = {}
        self._not_built = ""
        self._journal = JournalWriter(directory / journal.NAME, sync=not target.is_model)
        self._journal.begin(self.head)

    def attempt(self, result: CaseResult) -> None:
        """A case ended and is run once more."""
        self._journal.attempt(result)

    def case(self, result: CaseResult) -> None:
        """A case ended."""
        self._cases[result.id] = result
        self._journal.case(result)

    def beside(self, result: CaseResult) -> bool:
        """Something happened beside the cases; whether it had not happened on another guest.

        Of what several guests show, a result that is no pass stands.
        """
        known = self._cases.get(result.id)
        if known is None or known.outcome is Outcome.PASS:
            self.case(result)
        return known is None

    def contradicted(self, found: Contradiction) -> None:
        """A guest's kernel contradicts a dated switch; every guest says so once or oftener."""
        self._contradictions[found.switch] = found

    def not_built(self, reason: str) -> None:
        """The kernel has no user_events."""
        self._not_built = reason

    def guest_started(self, how: str) -> None:
        """How a guest came up; of several, the first that has a reason to tell stands."""
        if how and self.head.host.get("guests", RESTORED) in (BOOTED, RESTORED):
            self.head.host["guests"] = how

    def discard(self) -> None:
        """Forget this run: its files go, and its directory if nothing else is in it.

        May be called again, once the guests are gone and write no more.
        """
        self._journal.close()
        for name in (journal.NAME, CONSOLE, QEMU_LOG):
            (self.directory / name).unlink(missing_ok=True)
        for guest in self.directory.glob("gw*"):
            shutil.rmtree(guest)
        with contextlib.suppress(OSError):
            self.directory.rmdir()

    def covered(self, counted: Sequence[Counted]) -> list[Coverage]:
        """What the guests have executed together, kept in coverage.json; an item per object.

        Call once the guests are gone, before their consoles are joined.  Raises NoCoverage.
        """
        found = []
        for each in counted:
            files = sorted(self.directory.glob(f"**/*-{each.notes.stem}{COUNTERS}"))
            if not files:
                raise NoCoverage(f"no guest told its counters of {each.source}", _NO_COUNTERS)
            found.append(coverage(each, files))
            for file in files:
                file.unlink()
        write_atomically(self.directory / COVERAGE, json.dumps([one.to_json() for one in found]))
        return found

    def show(self, record: RunRecord) -> None:
        """Write the page of this run, which says what coverage.json says as well."""
        # Processes that run cases wait for their imports, and write no page.
        from conformance.report import html
        from conformance.report.findings import read_findings
        from conformance.report.matrix import matrix
        from conformance.report.runs import Run, read_covered

        run = Run(record, covered=read_covered(self.directory))
        page = html.render_html(matrix([run]), read_findings())
        write_atomically(self.directory / html.NAME, page)

    def join_consoles(self) -> None:
        """Put the consoles of guests side by side into one console.log, one after the other."""
        whole = self.directory / CONSOLE
        for part in sorted(self.directory.glob(f"gw*/{CONSOLE}")):
            with whole.open("a", errors="replace") as file:
                file.write(f"=== guest {part.parent.name} ===\n")
                file.write(part.read_text(errors="replace"))
            shutil.rmtree(part.parent)

    def finish(self, selected: int, note: str) -> RunRecord:
        """Write everything that is written at the end."""
        cases = tuple(self._cases.values())
        not_built = bool(self._not_built) and all(case.not_built for case in cases)
        why = self._not_built
        if why and not not_built:
            why = "some guests of this kernel had user_events and others had not"
        record = RunRecord(
            head=self.head,
            cases=cases,
            selected=selected,
            duration_s=round(time.monotonic() - self._started, 3),
            note=note or why,
            not_built=not_built,
            contradictions=tuple(each for _, each in sorted(self._contradictions.items())),
        )
        self._journal.end(note)
        self._journal.close()
        results.write_results(record, self.directory / results.NAME)
        junit.write_junit(record, self.directory / junit.NAME)
        ktap.write_ktap(record, self.directory / ktap.NAME)
        return record


def _head(target: Target) -> RunHead:
    host = {"accel": "none", "machine": platform.machine(), "kernel": platform.release()}
    if target.accelerator is not None:
        host["accel"] = target.accelerator.name
        host["accel_reason"] = target.accelerator.why
        host["kvm"] = target.accelerator.verdict.value
    return RunHead(
        kernel=KernelFacts(
            id=target.id,
            release=target.release,
            profile=target.profile.name,
            variant=target.variant,
            config_sha256=target.config_sha256,
            source=target.source,
        ),
        host=host,
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        suite=_revision(),
        self_check=target.is_model,
    )


def _revision() -> str:
    """The revision of this suite, as git describes it; "unknown" outside of a checkout."""
    try:
        described = subprocess.run(
            ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return described.stdout.strip()
