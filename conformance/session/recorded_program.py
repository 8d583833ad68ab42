"""A program in a guest, below the recorder: its start, its end, and the recording."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.session.program_guest import ProgramGuest, program_guest
from conformance.session.target.target import Target
from host.deadline import Deadline
from host.temporary_directories import scratch
from host.text import one_line
from vm.errors import GuestCrashed
from vm.recorder.program import compile_recorder
from vm.recorder.recording import Group, groups
from vm.shell.relay import TimedOut
from vm.shell.root import TOOLS

_PROGRAM, _RECORDING = "recorder", "recording"
_SIGILL = 128 + signal.SIGILL


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended: the recording, and how it ended.

    ``crashed`` means that the kernel crashed or reported something; ``remarks`` say how.
    """

    recording: bytes
    crashed: bool
    remarks: tuple[str, ...]

    @property
    def groups(self) -> Iterator[Group]:
        """The decoded recording.  Raises BadRecording."""
        return groups(io.StringIO(self.recording.decode("ascii")))


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """A program and its arguments, or one word for sh; listener; place of the name in user_reg."""

    words: Sequence[str]
    listener: str
    name_offset: int

    def run(self, target: Target, work: Path, limit: float | None) -> Ended:
        """Run it in a guest with ``work`` as /host, at most ``limit`` seconds.

        Raises VmError, OSError.
        """
        with scratch() as tools:
            compile_recorder(tools / _PROGRAM)
            remarks: list[str] = []
            crashed = False
            try:
                with program_guest(target, work, tools=tools) as guest:
                    remarks.append(self._run(guest, limit))
                    reports = [f"the kernel reported: {r.text}" for r in guest.reports()]
                    crashed = bool(reports)
                    remarks += reports
            except GuestCrashed as error:
                remarks.append(str(error))
                crashed = True
            file = tools / _RECORDING
            # A guest that ended at once has written nothing.
            recording = file.read_bytes() if file.exists() else b""
        return Ended(recording, crashed, tuple(map(one_line, filter(None, remarks))))

    def _run(self, guest: ProgramGuest, limit: float | None) -> str:
        """Run it; how it ended if not with exit code 0."""
        words = list(self.words) if len(self.words) > 1 else ["sh", "-c", *self.words]
        tool = [f"{TOOLS}/{_PROGRAM}", f"{TOOLS}/{_RECORDING}"]
        deadline = None if limit is None else Deadline(limit, "end of the program")
        terminal = os.isatty(0) and os.isatty(1)
        try:
            code = guest.run(
                [*tool, self.listener, str(self.name_offset), *words],
                interactive=terminal,
                deadline=deadline,
            )
        except TimedOut:
            return f"the program was ended after {limit:g} s (--deadline)"
        return _ended(code)


def _ended(code: int) -> str:
    """How the program ended, "" if well; as a shell says it."""
    ended = f"the program ended with exit code {code}" if code else ""
    if code == _SIGILL:
        ended += ": the guest's processor lacks an instruction; compile for any x86-64"
    return ended
