"""Two tasks that run concurrently on two CPUs."""

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
    """A task on CPU 0 and one on CPU 1: by default threads of one process."""

    def __init__(self, ue: UserEvents, flags: int = THREAD, *, registered: bool = False) -> None:
        """``registered``: the first task has an event before the second exists."""
        self.left = first_task(ue)
        if registered:
            self.left.open_data().register(ue.name("before"))
        self.right = self.left.make(flags)
        self.left.pin(0)
        self.right.pin(1)
        self.prepared_left = RaceCalls(self.left)
        self.prepared_right = RaceCalls(self.right)

    def open_data(self) -> tuple[DataFile, DataFile]:
        """Open the data file in both tasks."""
        return self.left.open_data(), self.right.open_data()

    def race(self, left: Iterable[Operation], right: Iterable[Operation]) -> list[list[Tally]]:
        """Run the calls of both tasks concurrently; the answers of each."""
        return race(self.left, track(self.left, *left), track(self.right, *right))


def enable_file(ue: UserEvents, stem: str = "e") -> str:
    """The `enable` file of an event of the case."""
    return f"{EVENTS}/{ue.name(stem)}/enable"
