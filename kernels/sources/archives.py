"""Run a program that unpacks a source, and tell who must act if it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from host.deadline import Deadline
from host.progress import Progress, ticking
from kernels.errors import Killed, SourceUnavailable
from kernels.store.store import Store
from kernels.tools import child_process

UNPACK_S = 1800.0


def unpack(
    argv: Sequence[str],
    what: str,
    store: Store,
    progress: Progress,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run the program; `what` names its work.  Raises Killed, StoreFull, SourceUnavailable."""
    deadline = Deadline(UNPACK_S, what)
    output: list[str] = []
    status = child_process.run(
        argv,
        env=env,
        deadline=deadline,
        on_line=output.append,
        on_tick=ticking(progress, deadline),
    )
    if status < 0:
        raise Killed(what)
    if status:
        store.require_space(1, what)
        raise SourceUnavailable(
            f"{what} failed: {' '.join(output[-3:])}",
            "try again; if it fails the same way, report it with this message",
        )
