"""Races of tasks, and calls for them that use separate memory."""

from __future__ import annotations

import os
import struct

from conformance import ops
from conformance.abi import uapi
from conformance.abi.profile import USER_REG_OF
from conformance.client.caller import Word
from conformance.client.data_file import DataFile, reg_members
from conformance.client.tasks import Task
from conformance.ops import race as races
from conformance.ops.race import Race, Tally, Track
from conformance.ops.tasks import ExitTask

_ENDS = (ops.Exit, ExitTask)


def track(task: Task, *steps: ops.Operation, passes: int = 1) -> Track:
    """The steps of a task in a race."""
    return Track(task.actor, steps, passes)


def race(first: Task, *tracks: Track) -> list[list[Tally]]:
    """Run tracks of tasks of one driver at once; return answer counts per track and step.

    An answer is a value in decimal digits or the name of an error.
    """
    for each in tracks:
        if isinstance(each.steps[-1], _ENDS):
            first.unwatch(each.actor)
    seen = first.run(Race(tracks[0].actor, tracks))
    return races.parse_tallies(seen.text)


class RaceCalls:
    """Prepared calls of one task, each with its own argument memory."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def register(
        self,
        data: DataFile,
        definition: str,
        *,
        word: Word | None = None,
        bit: int = 0,
        flags: int = 0,
    ) -> ops.Ioctl:
        """DIAG_IOCSREG, as ``DataFile.register``."""
        profile = self._task.profile
        name_args = self._task.place(definition.encode() + b"\0")
        word = (word or self._task.word()) if profile.has("remote_enable") else None
        members = reg_members(profile, name_args, word, bit, flags)
        raw = USER_REG_OF[profile.generation].pack(members)
        return self._ioctl(data, uapi.DIAG_IOCSREG, raw)

    def unregister(self, data: DataFile, word: Word, bit: int = 0) -> ops.Ioctl:
        """DIAG_IOCSUNREG of a word and bit."""
        members = {
            "size": uapi.USER_UNREG.size,
            "disable_bit": bit,
            "disable_addr": word.address,
        }
        return self._ioctl(data, uapi.DIAG_IOCSUNREG, uapi.USER_UNREG.pack(members))

    def delete(self, data: DataFile, name: str) -> ops.Ioctl:
        """DIAG_IOCSDEL of a name."""
        return self._ioctl(data, uapi.DIAG_IOCSDEL, name.encode() + b"\0")

    def _ioctl(self, data: DataFile, request: int, content: bytes) -> ops.Ioctl:
        return ops.Ioctl(self._task.actor, data.slot, request, self._task.place(content))

    def write(self, data: DataFile, index: int, payload: bytes = b"") -> ops.Write:
        """write(2) of a write index and a payload."""
        raw = struct.pack("<i", index) + payload
        return ops.Write(self._task.actor, data.slot, self._task.place(raw), len(raw))

    def switch(self, path: str) -> tuple[ops.Write, ops.Write]:
        """Open a file of tracefs; return the writes of 1 and 0."""
        _, slot = self._task.open(path, os.O_WRONLY)
        actor = self._task.actor
        return (
            ops.Write(actor, slot, self._task.place(b"1"), 1),
            ops.Write(actor, slot, self._task.place(b"0"), 1),
        )

    def command(self, path: str, text: str) -> ops.Write:
        """Open a file of tracefs; return the write of a text."""
        _, slot = self._task.open(path, os.O_WRONLY)
        raw = text.encode()
        return ops.Write(self._task.actor, slot, self._task.place(raw), len(raw))

    def close(self, data: DataFile) -> ops.Close:
        """close(2)."""
        return ops.Close(self._task.actor, data.slot)

    def open(self, path: str, flags: int = os.O_RDONLY) -> ops.Open:
        """open(2)."""
        return ops.Open(self._task.actor, self._task.free_slot(), path, flags)
