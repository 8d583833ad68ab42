"""Two tasks that run at once, each on a processor of its own."""

from __future__ import annotations

from conformance.program.tasks import THREAD
from conformance.sut.racing import Prepared
from conformance.sut.tasks import first_task
from conformance.sut.tracefs import EVENTS
from conformance.sut.user_events import UserEvents


class Racers:
    """A task on processor 0 and one on processor 1: by default a thread of the same process."""

    def __init__(self, ue: UserEvents, flags: int = THREAD, *, registered: bool = False) -> None:
        """Whoever has ``registered`` before shares what it follows with later threads."""
        self.left = first_task(ue)
        if registered:
            self.left.open_data().register(ue.name("before"))
        self.right = self.left.make(flags)
        self.left.pin(0)
        self.right.pin(1)
        self.prepared_left = Prepared(self.left)
        self.prepared_right = Prepared(self.right)


def enable_file(ue: UserEvents, stem: str = "e") -> str:
    """The file that switches an event of the program's own."""
    return f"{EVENTS}/{ue.name(stem)}/enable"
