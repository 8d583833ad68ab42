"""A program below the recorder, in a guest or here: its start, its end, and the recording."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from conformance.session.here.system import BorrowedSystem
from conformance.session.program_guest import ProgramGuest, directories_named, program_guest
from conformance.session.target.target import Target
from host.deadline import Deadline
from host.die_with_parent import __file__ as LEASH
from host.kernel_reports import CRASHES, HARMLESS
from host.temporary_directories import scratch
from host.text import one_line
from vm.errors import GuestCrashed
from vm.here.kernel_log import KernelLog
from vm.here.processes import end_session
from vm.recorder.program import compile_recorder
from vm.recorder.recording import Group, groups
from vm.shell.relay import TimedOut
from vm.shell.root import TOOLS

_PROGRAM, _RECORDING = "recorder", "recording"
_SIGILL = 128 + signal.SIGILL
#: Seconds in which the killed processes of the program must end.
_END_S = 10.0


class Ended(Struct, frozen=True):
    """A program that has ended: the recording, and how it ended.

    ``crashed`` means that the kernel crashed, reported something, or kept the system from being
    restored; ``remarks`` say how.
    """

    recording: bytes
    crashed: bool
    remarks: tuple[str, ...]

    @property
    def groups(self) -> Iterator[Group]:
        """The decoded recording.  Raises BadRecording."""
        return groups(io.TextIOWrapper(io.BytesIO(self.recording), "ascii", newline="\n"))


class RecordedProgram(Struct, frozen=True):
    """A program and its arguments, or one word for sh; listener; place of the name in user_reg."""

    words: Sequence[str]
    listener: str
    name_offset: int

    def run(self, target: Target, work: Path, limit: float | None) -> Ended:
        """Run it in a guest with ``work`` as /host, at most ``limit`` seconds.

        Raises UserMistake, VmError, OSError.
        """
        more = directories_named(self.words, work)
        with scratch() as tools:
            compile_recorder(tools / _PROGRAM)
            remarks: list[str] = []
            crashed = False
            try:
                with program_guest(target, work, tools=tools, more=more) as guest:
                    remarks.append(self._run(guest, limit))
                    reports = [f"the kernel reported: {r.text}" for r in guest.reports()]
                    crashed = bool(reports)
                    remarks += reports
            except GuestCrashed as error:
                remarks.append(str(error))
                crashed = True
            return _ended(tools, crashed, remarks)

    def run_here(self, limit: float | None, *, even_so: bool) -> Ended:
        """Run it on the running kernel, at most ``limit`` seconds, and put the system back.

        Not if the kernel crashed or holds the program: it could hold this process as well.  With
        ``even_so`` user events of other programs may exist.  Raises KernelsError, VmError, OSError.
        """
        system = BorrowedSystem.claim(even_so=even_so)
        with scratch() as tools, closing(KernelLog(tools / "console")) as log:
            compile_recorder(tools / _PROGRAM)
            try:
                system.begin()
                remarks = [self._run_in_session(system, tools, limit)]
            finally:
                not_restored = _restore(system, log)
            reports = [each for each in log.findings() if each.kind not in HARMLESS]
            remarks += [f"the kernel reported: {each.text}" for each in reports]
            remarks += [f"not restored: {each}" for each in not_restored]
            return _ended(tools, bool(reports or not_restored), remarks)

    def _run_in_session(self, system: BorrowedSystem, tools: Path, limit: float | None) -> str:
        """Run it in a session of its own, which ends with it; how it ended.

        The recorder dies with this process, and takes all tasks of the program with it.
        """
        leash = [sys.executable, "-I", "-S", LEASH, str(os.getpid())]
        process = subprocess.Popen([*leash, *self._command(str(tools))], start_new_session=True)
        try:
            system.note_session(process.pid)
            code = process.wait(limit)
            return _said(128 - code if code < 0 else code)
        except subprocess.TimeoutExpired:
            return _too_long(limit)
        finally:
            if stuck := end_session(process.pid, Deadline(_END_S, "end of the program")):
                system.give_up(f"{stuck[0]} and cannot be killed")
            process.poll()

    def _command(self, tools: str) -> list[str]:
        words = list(self.words) if len(self.words) > 1 else ["sh", "-c", *self.words]
        tool = [f"{tools}/{_PROGRAM}", f"{tools}/{_RECORDING}"]
        return [*tool, self.listener, str(self.name_offset), *words]

    def _run(self, guest: ProgramGuest, limit: float | None) -> str:
        """Run it; how it ended if not with exit code 0."""
        deadline = None if limit is None else Deadline(limit, "end of the program")
        terminal = os.isatty(0) and os.isatty(1)
        try:
            code = guest.run(self._command(TOOLS), interactive=terminal, deadline=deadline)
        except TimedOut:
            return _too_long(limit)
        return _said(code)


def _restore(system: BorrowedSystem, log: KernelLog) -> list[str]:
    """Put the system back, unless the kernel crashed; what was not restored, a line each."""
    try:
        crashes = [each.text for each in log.findings() if each.kind in CRASHES]
        if crashes:
            system.give_up(f"the kernel crashed: {crashes[0]}")
    finally:
        not_restored = system.restore()
    return not_restored


def _ended(tools: Path, crashed: bool, remarks: Iterable[str]) -> Ended:
    file = tools / _RECORDING
    # A guest that ended at once has written nothing.
    recording = file.read_bytes() if file.exists() else b""
    return Ended(recording, crashed, tuple(map(one_line, filter(None, remarks))))


def _too_long(limit: float | None) -> str:
    return f"the program was ended after {limit:g} s (--deadline)"


def _said(code: int) -> str:
    """How the program ended, "" if well; as a shell says it."""
    ended = f"the program ended with exit code {code}" if code else ""
    if code == _SIGILL:
        ended += ": the guest's processor lacks an instruction; compile without -march=native"
    return ended
