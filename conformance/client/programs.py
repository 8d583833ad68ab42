"""Programs of the host that trace the events of a process."""

from __future__ import annotations

from conformance import ops
from conformance.client.process import Process
from conformance.client.user_events import UserEvents
from conformance.ops import Observation


class Programs:
    """Lines of sh in a directory of their own, by a root process that registers nothing.

    ``writer`` is the process whose records they print; it must not have registered anything yet.
    """

    def __init__(self, ue: UserEvents, writer: Process) -> None:
        self._ue = ue
        self._actor = ue.tracefs.actor
        self._place = f"/tmp/{ue.name('files')}"
        # In the parent of a shell $PPID is the writer.
        line = f"mkdir {self._place} && echo $PPID $(cat /proc/$PPID/comm) > {self._place}/writer"
        writer.run(ops.RunProgram(writer.actor, line))

    def run(
        self,
        line: str,
        prints: str = "",
        *,
        status: int = 0,
        event: str = "",
        attach: str = "",
        detach: str = "",
    ) -> Observation:
        """Run a line and compare what it prints; see ops.RunProgram.

        It has $pid and $comm of the writer.
        """
        full = f"cd {self._place} && read pid comm < writer\n{line}"
        program = ops.RunProgram(self._actor, full, prints, status, event, attach, detach)
        return self._ue.lockstep.run(program)[0]
