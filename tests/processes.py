"""The processes of this host, and waiting for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from host.deadline import Deadline


def wait_for(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Poll until a condition holds.  Raises DeadlineExpired."""
    deadline = Deadline(seconds, what)
    while not condition():
        deadline.pause(0.02)


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    return not list(_living(str(pid)))


def children(parent: int, name: str) -> list[int]:
    """The children of a process whose program has this in its name."""
    return [pid for pid, program, above in _living() if above == parent and name in program]


def naming(text: str) -> list[str]:
    """The command lines that contain a text."""
    lines = [_read(file).replace("\0", " ") for file in Path("/proc").glob("[0-9]*/cmdline")]
    return [line for line in lines if text in line]


def _living(pid: str = "[0-9]*") -> Iterator[tuple[int, str, int]]:
    """Id, program and parent of processes."""
    for file in Path("/proc").glob(f"{pid}/stat"):
        program, _, rest = _read(file).rpartition(")")
        if rest and not rest.startswith(" Z"):
            yield int(file.parent.name), program, int(rest.split()[1])


def _read(file: Path) -> str:
    """The text of a file, "" if its process has gone."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
