"""Looking again and again at the same places of a process: what that takes is prepared once."""

from __future__ import annotations

import struct

from vm.guest import syscalls

_MASK = (1 << 64) - 1


class Looks:
    """The places, [process id, address, length], that were watched last, and what they held."""

    def __init__(self) -> None:
        self._scratch = syscalls.Scratch(1 << 16)
        self._watch: list[list[int]] = []
        self._arguments: tuple[int, ...] = ()
        self._memory = self._total = 0
        self._seen: bytes | None = None
        self._shown: list[str | None] = []

    def at(self, watch: list[list[int]]) -> list[str | None] | None:
        """What is there, in hex, with one system call.

        None unless all can be read and are of one process: each has to be looked at by itself.
        """
        if watch != self._watch:
            self._prepare(watch)
        if not self._arguments:
            return None
        value, _ = syscalls.syscall(syscalls.SYS_PROCESS_VM_READV, *self._arguments)
        if value != self._total:
            return None
        seen = self._scratch.bytes_at(self._memory, self._total)
        if seen != self._seen:
            self._seen, self._shown = seen, self._hex(seen)
        return self._shown

    def _prepare(self, watch: list[list[int]]) -> None:
        self._watch, self._seen, self._arguments = watch, None, ()
        if len({place[0] for place in watch}) != 1:
            return
        self._scratch.clear()
        self._total = sum(length for _, _, length in watch)
        self._memory = self._scratch.place(bytes(self._total))
        numbers = [number for _, where, length in watch for number in (where & _MASK, length)]
        remote = self._scratch.place(struct.pack(f"{len(numbers)}Q", *numbers))
        local = self._scratch.place(struct.pack("2Q", self._memory, self._total))
        self._arguments = (watch[0][0], local, 1, remote, len(watch), 0)

    def _hex(self, seen: bytes) -> list[str | None]:
        shown: list[str | None] = []
        start = 0
        for _, _, length in self._watch:
            shown.append(seen[start : start + length].hex())
            start += length
        return shown
