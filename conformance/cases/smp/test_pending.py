"""Two CPUs: work that the kernel defers while another task holds event_mutex.

Kernel workers fault in words and delete events under event_mutex.  A task that replaces a filter
holds the mutex for an RCU grace period: a call made meanwhile finds that work pending.
"""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.smp import Racers, enable_file
from conformance.client.addresses import PAGE
from conformance.client.data_file import DataFile, Word
from conformance.client.races import Prepared, race, track
from conformance.client.tasks import Task
from conformance.client.tracefs import EVENTS
from conformance.client.user_events import UserEvents
from conformance.ops import Discard, Operation
from conformance.ops.race import Track
from conformance.ops.tasks import THREAD

case = surface(
    "smp",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12",
    profiles="6.4..",
    tier="full",
    facilities="smp",
)

HELD = [{"6": 1}] * 3


def _holds(ue: UserEvents, both: Racers) -> Track:
    """A third task that keeps event_mutex locked, through an unrelated event."""
    task = both.right.thread()
    task.pin(0)
    task.open_data().register(f"{ue.name('held')} u8 v")
    path = f"{EVENTS}/{ue.name('held')}/filter"
    ue.tracefs.directory(ue.name("held")).set_filter("v == 0")
    prepared = Prepared(task)
    return track(task, *(prepared.command(path, f"v == {number}") for number in (1, 2, 3)))


def _awaited(ue: UserEvents, data: DataFile, task: Task, stem: str = "e") -> Word:
    """A registered word of a task whose page is absent."""
    word = Word(task, task.map())
    data.register(ue.name(stem), bit=4, word=word)
    task.run(Discard(task.actor, word.address, PAGE))
    return word


@case(
    spec="user_event_enabler_dup; trace_events_user.c:user_event_enabler_fault_fixup",
    doc="Status: fork() retains registered events: each process has its own word",
)
def test_fork_behind_a_fault(ue: UserEvents) -> None:
    """A child forked while the parent's word waits for its page is updated by each later change."""
    both = Racers(ue, 0)
    holds = _holds(ue, both)
    word = _awaited(ue, both.right.open_data(), both.right)
    on, _ = both.prepared_right.switch(enable_file(ue))
    fork = both.right.cloning()
    told = race(both.left, holds, track(both.right, on, fork))
    assert told == [HELD, [{"1": 1}, {"0": 1}]]
    copy = Word(both.right.adopt(fork), word.address)
    assert word.wait() == 16
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert copy.wait() == 16
    ue.tracefs.disable(ue.name())
    assert copy.wait() == 0


@case(
    spec="user_events_ioctl_unreg: ENABLE_VAL_FREEING_BIT; "
    "trace_events_user.c:user_event_enabler_fault_fixup",
    doc="Unregistering: ends updates of the bit",
    needs="auto_delete",
)
@variants({"threads": THREAD, "processes": 0})
def test_unregistered_behind_a_fault(ue: UserEvents, flags: int) -> None:
    """A word unregistered while it waits for its page stays clear and holds no reference."""
    both = Racers(ue, flags)
    holds = _holds(ue, both)
    steps: list[Operation] = []
    words = []
    data = both.right.open_data()
    for stem in ("a", "b"):
        word = _awaited(ue, data, both.right, stem)
        on, _ = both.prepared_right.switch(enable_file(ue, stem))
        steps += (on, both.prepared_right.unregister(data, word, bit=4))
        words.append(word)
    told = race(both.left, holds, track(both.right, *steps))
    assert told == [HELD, [{"1": 1}, {"0": 1}] * 2]
    assert [word.wait() for word in words] == [0, 0]
    for stem in ("a", "b"):
        ue.tracefs.disable(ue.name(stem))
    data.close()
    assert ue.tracefs.status(eventually=True) == f"{ue.name('held')}\n"


@case(
    spec="delayed_destroy_user_event: looks again whether it was the last",
    doc="Registering: the event is deleted with its last reference, not before",
    needs="auto_delete",
)
@variants({"threads": THREAD, "processes": 0})
def test_registered_behind_the_last(ue: UserEvents, flags: int) -> None:
    """Registering an event right after its last reference was dropped keeps it alive."""
    both = Racers(ue, flags)
    holds = _holds(ue, both)
    other = both.right.open_data()
    data = both.right.open_data()
    data.unregister(data.register(f"{ue.name()} u32 v").word)
    closing = both.prepared_right.close(data)
    register = both.prepared_right.register(other, f"{ue.name()} u32 v")
    told = race(both.left, holds, track(both.right, closing, register))
    assert told == [HELD, [{"0": 1}, {"0": 1}]]
    assert other.delete(ue.name()).errno == "EBUSY"
    ue.tracefs.enable(ue.name())
    assert other.write_event(0, b"\1\0\0\0").value == 8
