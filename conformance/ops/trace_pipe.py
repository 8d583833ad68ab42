"""Consuming reads of the trace buffer: trace_pipe and trace_pipe_raw."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.ops.calls import FILE_LIMIT, Call, buffer, fd, sys_call
from conformance.ops.decoding import file_views, trace_page
from conformance.ops.decoding.file_views import View
from conformance.ops.operation import Operation, Reply

# More digits than a 64-bit number has.
_LONGEST_NUMBER = 40


class ReadPipe(Operation, frozen=True):
    """read(2) of at most ``count`` bytes of trace_pipe, compared as View.RECORDS.

    ``sizes`` as in ``ReadFile``.
    """

    slot: int
    count: int
    sizes: tuple[int, ...] = ()

    def c_text(self) -> str:
        return f"read(fd{self.slot}, buffer, {self.count})"

    def calls(self) -> list[Call]:
        return [sys_call("read", fd(self.slot), buffer(self.count), self.count)]

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        return replies[-1].value, self.compared(replies[-1].data or b"")

    def compared(self, text: bytes) -> bytes:
        """The part of the text that is compared."""
        return file_views.read(View.RECORDS, text, sizes=self.sizes)


class ReadPage(Operation, frozen=True):
    """read(2) of a page of trace_pipe_raw, compared as the text of ``trace_page``.

    ``id_path`` is the `id` file of the event whose records are of interest; ``sizes`` are the
    payload bytes of the records, so that their padding is left out.
    """

    slot: int
    id_path: str
    sizes: tuple[int, ...] = ()

    def c_text(self) -> str:
        return f"read(fd{self.slot}, buffer, getpagesize())"

    def calls(self) -> list[Call]:
        return [
            ["slurp", self.id_path, FILE_LIMIT],
            sys_call("getpid"),
            sys_call("read", fd(self.slot), buffer(trace_page.SIZE), trace_page.SIZE),
        ]

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        id_text, pid, page = replies
        event_id = _number(id_text.data or b"")
        text = trace_page.describe(page.data or b"", event_id, pid.value, self.sizes)
        return page.value, text.encode()


def _number(text: bytes) -> int:
    """The decimal number in a file; -1, which is no id, if there is none."""
    digits = text.strip()
    return int(digits) if digits.isdigit() and len(digits) < _LONGEST_NUMBER else -1
