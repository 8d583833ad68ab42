"""A recording made by hand, for what a real program shows only by chance."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

from conformance.abi import uapi
from conformance.abi.profile import Profile
from conformance.programs.judge import Judge
from conformance.programs.judgement import Judgement
from tests.programs.recordings import PROFILE
from vm.recorder.recording import groups

TRACEFS = "/sys/kernel/tracing"
DATA, STATUS = f"{TRACEFS}/user_events_data", f"{TRACEFS}/user_events_status"
ROOT = "0 0 1ffffffffff 0"
TID, WORD = 39, 0x9000
_PATH, _STRUCTURE, _NAME, _BUFFER = 0x5000, 0x7000, 0x6000, 0x8000
_ID = 497


def _hex(data: bytes | str) -> str:
    return (data.encode() if isinstance(data, str) else data).hex() or "-"


def memory(address: int, data: bytes, wanted: int | None = None) -> str:
    """A line of memory."""
    return f"memory {address:x} {len(data) if wanted is None else wanted} {_hex(data)}"


class Made:
    """The lines of a recording of one program."""

    def __init__(self, listener: str = "none") -> None:
        self._listener = listener
        self._lines = [] if listener == "none" else [f"listening {listener} 0"]
        self._lines.append(f"start {TID}")

    def line(self, *lines: str) -> Made:
        """Lines as they are."""
        self._lines += lines
        return self

    def call(
        self,
        number: int,
        *arguments: int,
        result: int = 0,
        file: tuple[int, str] | None = None,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        tid: int = TID,
        compat: int = 0,
    ) -> Made:
        """A call; ``file`` is what a descriptor shows before it."""
        padded = (*arguments, *(0 for _ in range(6 - len(arguments))))
        words = " ".join(f"{each & (1 << 64) - 1:x}" for each in padded)
        shown = [] if file is None else [f"file {file[0]} {_hex(file[1])}"]
        entry = f"call {tid} {tid} {number} {compat} {words}"
        return self.line(entry, *shown, *before, f"exit {tid} {result}", *after)

    def open(
        self,
        path: str = DATA,
        result: int = 3,
        flags: int = os.O_RDWR,
        credentials: str = ROOT,
    ) -> Made:
        """openat(2)."""
        before = [f"credentials {credentials}", memory(_PATH, path.encode() + b"\0")]
        after = [f"file {result} {_hex(path)}"] if result >= 0 else []
        arguments = (-100, _PATH, flags)
        return self.call(257, *arguments, result=result, before=before, after=after)

    def register(
        self,
        text: str,
        fd: int = 3,
        result: int = 0,
        flags: int = 0,
        credentials: str = ROOT,
    ) -> Made:
        """DIAG_IOCSREG with bit 31 of a word; the first event of its descriptor."""
        structure = struct.pack("<IBBHQQI", 28, 31, 4, flags, WORD, _NAME, 0)
        clear, enabled = memory(WORD, bytes(8)), memory(WORD, (1 << 31).to_bytes(8, "little"))
        before = [
            f"credentials {credentials}",
            memory(_STRUCTURE, structure),
            f"rights {_STRUCTURE:x} rw-p",
            memory(_NAME, text.encode() + b"\0"),
            clear,
            f"rights {WORD:x} rw-p",
        ]
        after = [clear, memory(_STRUCTURE, structure)]
        if result == 0 and self._listener != "none":
            found = f"event user_events {_ID} {_hex(text.split()[0])}"
            after += (
                ["enable user_events 0", found, enabled]
                if self._listener == "ftrace"
                else [found, f"perf {_ID} 0 0", enabled]
            )
        number = uapi.DIAG_IOCSREG
        arguments = (fd, number, _STRUCTURE)
        return self.call(16, *arguments, result=result, file=(fd, DATA), before=before, after=after)

    def unregister(self, fd: int = 3) -> Made:
        """DIAG_IOCSUNREG of the same bit."""
        structure = struct.pack("<IBBHQ", 16, 31, 0, 0, WORD)
        clear = memory(WORD, bytes(8))
        before = [f"credentials {ROOT}", memory(_STRUCTURE, structure), clear]
        arguments = (fd, uapi.DIAG_IOCSUNREG, _STRUCTURE)
        return self.call(16, *arguments, file=(fd, DATA), before=before, after=[clear])

    def write(
        self,
        payload: bytes = b"abcd",
        fd: int = 3,
        result: int | None = None,
        recorded: bytes | None = None,
        left: bytes | None = None,
        compat: int = 0,
    ) -> Made:
        """write(2) to write index 0, with its record if there is a listener.

        ``recorded`` is the payload before the call if it is another one, ``left`` that after it.
        """
        data = bytes(4) + payload
        before = data if recorded is None else bytes(4) + recorded
        after = []
        record = struct.pack("<HBBI", _ID, 1, 0, TID) + payload
        if self._listener == "ftrace":
            body = struct.pack("<I", len(record) // 4) + record
            after = [f"page 0 {_hex(struct.pack('<QQ', 1, len(body)) + body)}"]
        elif self._listener == "perf":
            raw = record + bytes(-(4 + len(record)) % 8)
            after = [f"sample 0 9 {_hex(struct.pack('<I', len(raw)) + raw)}"]
        if left is not None:
            after.append(memory(_BUFFER, bytes(4) + left))
        return self.call(
            1,
            *(fd, _BUFFER, len(data)),
            result=len(data) if result is None else result,
            file=(fd, DATA),
            before=[memory(_BUFFER, before)],
            after=after,
            compat=compat,
        )

    def write_text(self, path: str, text: str) -> Made:
        """open(2) and write(2) of a control file of tracefs."""
        fd, data = 5, memory(_BUFFER, text.encode())
        self.open(path, fd, os.O_WRONLY)
        arguments = (fd, _BUFFER, len(text))
        return self.call(1, *arguments, result=len(text), file=(fd, path), before=[data])

    def close(self, fd: int = 3, result: int = 0, tid: int = TID) -> Made:
        """close(2)."""
        return self.call(3, fd, result=result, file=None if result else (fd, DATA), tid=tid)

    def lines(self) -> list[str]:
        """The lines of the recording."""
        return [f"{line}\n" for line in [*self._lines, "done"]]

    def judged(self, profile: Profile = PROFILE) -> Judgement:
        """The judgement of the recording."""
        return Judge(profile).feed(groups(self.lines()))
