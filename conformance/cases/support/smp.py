"""Two tasks that run at once, each on a processor of its own."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.client.data_file import DataFile
from conformance.client.races import RaceCalls, race, track
from conformance.client.tasks import first_task
from conformance.client.tracefs import EVENTS
from conformance.client.user_events import UserEvents
from conformance.ops import Operation
from conformance.ops.race import Tally
from conformance.ops.tasks import THREAD


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
        self.prepared_left = RaceCalls(self.left)
        self.prepared_right = RaceCalls(self.right)

    def open_data(self) -> tuple[DataFile, DataFile]:
        """The data file, opened by each of them for itself."""
        return self.left.open_data(), self.right.open_data()

    def race(self, left: Iterable[Operation], right: Iterable[Operation]) -> list[list[Tally]]:
        """What each is answered that does its calls once, while the other does."""
        return race(self.left, track(self.left, *left), track(self.right, *right))


def enable_file(ue: UserEvents, stem: str = "e") -> str:
    """The file that switches an event of the program's own."""
    return f"{EVENTS}/{ue.name(stem)}/enable"
