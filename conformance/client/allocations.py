"""What the kernel allocates for user_events and does not free."""

from __future__ import annotations

from conformance.client.user_events import UserEvents
from conformance.ops.allocations import RecordAllocations, Unfreed

# Grace periods and deferred work pass within so many readings.
_READINGS = 20


class Allocations:
    """Records allocations from its creation on, in an instance of tracefs."""

    def __init__(self, ue: UserEvents) -> None:
        self._ue = ue
        self._path = ue.instance("memory").root
        # Its own use of an event must not be the first one.
        ue.event(name="settled")
        self._pass_a_grace_period()
        ue.process.run(RecordAllocations(ue.process.actor, self._path))

    def unfreed(self) -> str:
        """The functions whose allocations stay after deferred work: a line each."""
        process = self._ue.process
        for _ in range(_READINGS):
            if not process.run(Unfreed(process.actor, self._path)).data:
                break
            self._pass_a_grace_period()
        return process.run(Unfreed(process.actor, self._path, last=True)).text

    def _pass_a_grace_period(self) -> None:
        self._ue.tracefs.enable(self._ue.name("settled"))
        self._ue.tracefs.disable(self._ue.name("settled"))
