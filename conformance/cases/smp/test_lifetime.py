"""Two CPUs: processes and pages that come and go, and work that the kernel defers.

Kernel workers fault in words and delete events under event_mutex.  A task that replaces a filter
holds the mutex for an RCU grace period: a call made meanwhile finds that work pending.
"""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.smp import Racers, enable_file
from conformance.client.addresses import PAGE
from conformance.client.data_file import DataFile, Word
from conformance.client.races import RaceCalls, race, track
from conformance.client.tasks import Task
from conformance.client.tracefs import EVENTS
from conformance.client.user_events import UserEvents
from conformance.ops import Discard, Exit, Mprotect, Mremap, Munmap, Operation
from conformance.ops.race import Track
from conformance.ops.tasks import CLONE_VM, THREAD, ExitTask

case = surface(
    "smp",
    spec="user_event_enabler_fault_fixup",
    doc="Unregistering: during fork() registered events are retained",
    level="contract",
    profiles="6.4..",
    tier="full",
    facilities="smp",
)


@case(spec="user_event_mm_dup")
@variants(("on", True, 8), ("off", False, 0))
def test_forks_while_switched(ue: UserEvents, listening: bool, seen: int) -> None:
    """The word of each child forked during switching follows from the next change on."""
    both = Racers(ue, 0)
    data = both.left.open_data()
    word = data.register(ue.name(), bit=3).word
    on, off = both.prepared_right.switch(enable_file(ue))
    switching = (off, on) if listening else (on, off)
    forks = [both.left.cloning() for _ in range(3)]
    answers = race(both.left, track(both.left, *forks), track(both.right, *switching, passes=6))
    assert answers == [[{"0": 1}] * 3, [{"1": 6}] * 2]
    copies = [both.left.adopt(fork).word_at(word.address, value=None) for fork in forks]
    ue.tracefs.enable(ue.name())
    if not listening:
        ue.tracefs.disable(ue.name())
    assert {each.wait() for each in (word, *copies)} == {seen}


@case(
    spec="user_event_mm_remove",
    doc="Status: the kernel updates the specified bit as tools attach to the event and detach "
    "from it",
)
@variants(("thread", THREAD, True), ("memory", CLONE_VM, True), ("process", 0, False))
def test_ends_while_switched(ue: UserEvents, flags: int, alone: bool) -> None:
    """A task that exits during switching does not affect the words of the others."""
    both = Racers(ue, flags, registered=True)
    kept = both.right.open_data().register(ue.name(), bit=1, word=both.right.word()).word
    both.left.open_data().register(ue.name(), bit=2, word=both.left.word())
    on, off = both.prepared_right.switch(enable_file(ue))
    actor = both.left.actor
    end = ExitTask(actor) if alone else Exit(actor)
    answers = race(both.right, track(both.left, end), track(both.right, off, on, passes=10))
    assert answers == [[{"0": 1}], [{"1": 10}, {"1": 10}]]
    assert kept.wait() == 2
    ue.tracefs.disable(ue.name())
    assert kept.wait() == 0


@case(
    doc="Status: the kernel updates the specified bit as tools attach to the event and detach "
    "from it"
)
@variants({"one-word": 0, "two-words": 8, "two-pages": PAGE})
def test_two_faults_on_a_page(ue: UserEvents, apart: int) -> None:
    """Two events are enabled concurrently while the pages of their words are absent: both are
    set.
    """
    both = Racers(ue)
    address = both.left.map(2)
    data = both.left.open_data()
    first = Word(both.left, address)
    second = Word(both.left, address + apart)
    data.register(ue.name("a"), bit=0, word=first)
    data.register(ue.name("b"), bit=9, word=second)
    one, _ = both.prepared_left.switch(enable_file(ue, "a"))
    two, _ = both.prepared_right.switch(enable_file(ue, "b"))
    both.left.run(Discard(both.left.actor, address, 2 * PAGE))
    answers = both.race([one], [two])
    assert answers == [[{"1": 1}], [{"1": 1}]]
    assert first.wait() & 1 == 1
    assert second.wait() & 0x200 == 0x200


@case(spec="user_event_mm_dup; trace_events_user.c:user_event_enabler_fault_fixup")
@variants({"away": True, "there": False})
def test_fork_while_a_fault_waits(ue: UserEvents, discarded: bool) -> None:
    """A child forked while the parent's page is faulted in follows from the next change on."""
    both = Racers(ue, 0)
    address = both.left.map()
    word = Word(both.left, address)
    both.left.open_data().register(ue.name(), bit=4, word=word)
    on, _ = both.prepared_right.switch(enable_file(ue))
    if discarded:
        both.left.run(Discard(both.left.actor, address, PAGE))
    fork = both.left.cloning()
    answers = both.race([fork], [on])
    assert answers == [[{"0": 1}], [{"1": 1}]]
    assert word.wait() == 16
    copy = Word(both.left.adopt(fork), address)
    assert copy.wait() in (0, 16)
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert word.wait() == 16
    assert copy.wait() == 16


@case(
    doc="Registering: enable_addr must be write accessible; silent about one that is not any more",
    level="behaviour",
)
@variants(
    ("discarded", "discard"), ("unmapped", "unmap"), ("protected", "protect"), ("moved", "move")
)
def test_page_goes_while_switched(ue: UserEvents, way: str) -> None:
    """Discarding a page while its word is written does no harm; the next change writes it again."""
    both = Racers(ue)
    address, actor = both.left.map(), both.left.actor
    word = Word(both.left, address)
    both.left.open_data().register(ue.name(), bit=0, word=word)
    on, off = both.prepared_right.switch(enable_file(ue))
    elsewhere = both.left.reserve(1)
    goes = {
        "discard": Discard(actor, address, PAGE),
        "unmap": Munmap(actor, address, PAGE),
        "protect": Mprotect(actor, address, PAGE, 0),
        "move": Mremap(actor, address, PAGE, elsewhere),
    }[way]
    answers = race(both.left, track(both.left, goes), track(both.right, on, off, passes=4))
    answer = f"{elsewhere}" if way == "move" else "0"
    assert answers == [[{answer: 1}], [{"1": 4}, {"1": 4}]]
    if way in ("unmap", "move"):
        assert both.left.map_again(address).errno == ""
    elif way == "protect":
        assert both.left.protect(address, 3).value == 0
    both.left.store(address, b"\0\0\0\0")
    ue.tracefs.enable(ue.name())
    assert word.wait() == 1


HELD = [{"6": 1}] * 3


def _holds(ue: UserEvents, both: Racers) -> Track:
    """A third task that keeps event_mutex locked, through an unrelated event."""
    task = both.right.thread()
    task.pin(0)
    task.open_data().register(f"{ue.name('held')} u8 v")
    path = f"{EVENTS}/{ue.name('held')}/filter"
    ue.tracefs.directory(ue.name("held")).set_filter("v == 0")
    prepared = RaceCalls(task)
    return track(task, *(prepared.command(path, f"v == {number}") for number in (1, 2, 3)))


def _awaited(ue: UserEvents, data: DataFile, task: Task, stem: str = "e") -> Word:
    """A registered word of a task whose page is absent."""
    word = Word(task, task.map())
    data.register(ue.name(stem), bit=4, word=word)
    task.run(Discard(task.actor, word.address, PAGE))
    return word


@case(spec="user_event_enabler_dup; trace_events_user.c:user_event_enabler_fault_fixup")
def test_fork_behind_a_fault(ue: UserEvents) -> None:
    """A child forked while the parent's word waits for its page is updated by each later change."""
    both = Racers(ue, 0)
    holds = _holds(ue, both)
    word = _awaited(ue, both.right.open_data(), both.right)
    on, _ = both.prepared_right.switch(enable_file(ue))
    fork = both.right.cloning()
    answers = race(both.left, holds, track(both.right, on, fork))
    assert answers == [HELD, [{"1": 1}, {"0": 1}]]
    copy = Word(both.right.adopt(fork), word.address)
    assert word.wait() == 16
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert copy.wait() == 16
    ue.tracefs.disable(ue.name())
    assert copy.wait() == 0


@case(spec="user_event_enabler_dup: pending frees are skipped")
def test_fork_behind_an_unregistered_word(ue: UserEvents) -> None:
    """A word unregistered while it waits for its page is not registered in a child forked then."""
    both = Racers(ue, 0)
    holds = _holds(ue, both)
    data = both.right.open_data()
    word = _awaited(ue, data, both.right)
    on, _ = both.prepared_right.switch(enable_file(ue))
    unregister = both.prepared_right.unregister(data, word, bit=4)
    fork = both.right.cloning()
    answers = race(both.left, holds, track(both.right, on, unregister, fork))
    assert answers == [HELD, [{"1": 1}, {"0": 1}, {"0": 1}]]
    child = both.right.adopt(fork)
    assert data.of(child).unregister(word.address, bit=4).errno == "ENOENT"
    assert word.wait() == 0


@case(
    spec="user_events_ioctl_unreg: ENABLE_VAL_FREEING_BIT; "
    "trace_events_user.c:user_event_enabler_fault_fixup",
    doc="Unregistering: disables the bit at the address",
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
    answers = race(both.left, holds, track(both.right, *steps))
    assert answers == [HELD, [{"1": 1}, {"0": 1}] * 2]
    assert [word.wait() for word in words] == [0, 0]
    for stem in ("a", "b"):
        ue.tracefs.disable(ue.name(stem))
    data.close()
    assert ue.tracefs.status(eventually=True) == f"{ue.name('held')}\n"


@case(
    spec="delayed_destroy_user_event: looks again whether it was the last",
    doc="Deleting: events auto-delete when no references are left",
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
    answers = race(both.left, holds, track(both.right, closing, register))
    assert answers == [HELD, [{"0": 1}, {"0": 1}]]
    assert other.delete(ue.name()).errno == "EBUSY"
    ue.tracefs.enable(ue.name())
    assert other.write_event(0, b"\1\0\0\0").value == 8
