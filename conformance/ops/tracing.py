"""What consumers of events do in tracefs: instances, filters by process, buffers that are consumed.

And one more way to write: through io_uring.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.ops.syscalls import Operation


@dataclass(frozen=True, slots=True)
class MakeDirectory(Operation):
    """mkdir(2) of an absolute path with mode 0755."""

    path: str


@dataclass(frozen=True, slots=True)
class RemoveDirectory(Operation):
    """rmdir(2)."""

    path: str


@dataclass(frozen=True, slots=True)
class WritePid(Operation):
    """Open a file with ``flags``, give the process's own number to one write(2), close it.

    As ``echo $$`` of a shell does; the value is not compared, since it tells the digits.
    """

    path: str
    flags: int


@dataclass(frozen=True, slots=True)
class ReadPipe(Operation):
    """read(2) of at most ``count`` bytes of trace_pipe; compared is what View.RECORDS shows.

    ``prefix`` and ``sizes`` as in ``ReadFile``.
    """

    slot: int
    count: int
    prefix: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadPage(Operation):
    """read(2) of a page of trace_pipe_raw, compared as the text that ``page.shown`` makes of it.

    ``id_path`` is the file that says which type the records of interest have, ``sizes`` are the
    payload bytes of the records, so that the padding behind them is left out.
    """

    slot: int
    id_path: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SubmitWrite(Operation):
    """One IORING_OP_WRITE, or with ``vector`` IORING_OP_WRITEV, and the wait for its completion.

    ``count`` is of bytes, or of iovecs (16 bytes each) at ``address``; ``offset`` -1 is where the
    file is.  The value is the result that the completion tells.
    """

    slot: int
    address: int
    count: int
    offset: int = 0
    vector: bool = False
