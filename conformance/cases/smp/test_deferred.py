"""Calls that come before the work which the kernel defers.

Kernel workers fault in words and delete events.  The calls of a task with real-time priority come
first, so one CPU suffices.
"""

from conformance.cases.case import UserEvents, doc, spec, surface
from conformance.cases.support.smp import enable_file
from conformance.client.addresses import PAGE
from conformance.client.caller import Word
from conformance.client.races import RaceCalls, race, track
from conformance.client.tasks import first_task
from conformance.ops import Discard, Exit, Operation
from conformance.ops.race import Tally

SPEC = "user_event_enabler_fault_fixup"
DOC = "Unregistering: during fork() registered events are retained"
case = surface("smp", SPEC, DOC, level="contract", profiles="6.4..", tier="full")


class _Ahead:
    """A task whose calls come before the work that they defer."""

    def __init__(self, ue: UserEvents) -> None:
        self.task = first_task(ue)
        self.data = self.task.open_data()
        self.prepared = RaceCalls(self.task)
        self._ue = ue

    def awaited(self, stem: str = "e") -> Word:
        """A registered word in an absent page."""
        word = Word(self.task, self.task.map())
        self.data.register(self._ue.name(stem), bit=4, word=word)
        self.task.run(Discard(self.task.actor, word.address, PAGE))
        return word

    def switch(self, text: str, stem: str = "e") -> Operation:
        """The write of ``text`` to the `enable` file of an event."""
        return self.prepared.command(enable_file(self._ue, stem), text)

    def unregister(self, word: Word) -> Operation:
        """The call that unregisters a word."""
        return self.prepared.unregister(self.data, word, bit=4)

    def perform(self, *calls: Operation) -> list[Tally]:
        """Perform calls without a pause; the answers."""
        self.task.fifo()
        (answers,) = race(self.task, track(self.task, *calls))
        return answers


@case(tier="quick")
@spec("user_event_enabler_dup; trace_events_user.c:user_event_enabler_fault_fixup")
def test_fork_behind_a_fault(ue: UserEvents) -> None:
    """The bit of a child forked while its parent's page is faulted in follows later changes."""
    ahead = _Ahead(ue)
    word, fork = ahead.awaited(), ahead.task.cloning()
    assert ahead.perform(ahead.switch("1"), fork) == [{"1": 1}, {"0": 1}]
    copy = Word(ahead.task.adopt(fork), word.address)
    assert word.wait() == 16
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert copy.wait() == 16
    ue.tracefs.disable(ue.name())
    assert copy.wait() == 0


@case(spec="user_event_enabler_dup", tier="quick")
def test_fork_behind_a_fault_registers(ue: UserEvents) -> None:
    """A child forked while its parent's page is faulted in can unregister what it inherited."""
    ahead = _Ahead(ue)
    word, fork = ahead.awaited(), ahead.task.cloning()
    assert ahead.perform(ahead.switch("1"), fork) == [{"1": 1}, {"0": 1}]
    child = ahead.task.adopt(fork)
    assert word.wait() == 16
    assert ahead.data.of(child).unregister(word.address, bit=4).value == 0
    assert ahead.data.unregister(word.address, bit=4).value == 0


@case(spec="user_event_enabler_dup: pending frees are skipped", tier="quick")
def test_fork_behind_an_unregistered_word(ue: UserEvents) -> None:
    """A word unregistered while it waits for its page is not registered in a child forked then, to
    which the other words are.
    """
    ahead = _Ahead(ue)
    other = Word(ahead.task, ahead.task.map())
    ahead.data.register(ue.name(), bit=3, word=other)
    word, fork = ahead.awaited(), ahead.task.cloning()
    answers = ahead.perform(ahead.switch("1"), ahead.unregister(word), fork)
    assert answers == [{"1": 1}, {"0": 1}, {"0": 1}]
    child = ahead.task.adopt(fork)
    assert ahead.data.of(child).unregister(word.address, bit=4).errno == "ENOENT"
    assert word.wait() == 0
    copy = Word(child, other.address)
    assert copy.wait() == 8
    ue.tracefs.disable(ue.name())
    assert copy.wait() == 0


@case(doc="Status: the kernel updates the registered bit as tools attach and detach", tier="quick")
def test_enabled_behind_a_fault(ue: UserEvents) -> None:
    """A word gets the state that its event has when its page is there, not when it was awaited."""
    ahead = _Ahead(ue)
    word = ahead.awaited()
    ue.tracefs.enable(ue.name())
    assert word.wait() == 16
    ahead.task.run(Discard(ahead.task.actor, word.address, PAGE))
    assert ahead.perform(ahead.switch("0"), ahead.switch("1")) == [{"1": 1}, {"1": 1}]
    assert word.wait() == 16


@case(doc="Unregistering: disables the bit at the address", needs="auto_delete", tier="quick")
@spec("user_events_ioctl_unreg: ENABLE_VAL_FREEING_BIT;")
@spec("trace_events_user.c:user_event_enabler_fault_fixup")
def test_unregistered_behind_a_fault(ue: UserEvents) -> None:
    """A word unregistered while it waits for its page stays clear and holds nothing: neither its
    event, nor the process's other words after the exit.
    """
    ahead = _Ahead(ue)
    ahead.task.open_data().register(ue.name("kept"))
    first, second = ahead.awaited("a"), ahead.awaited("b")
    answers = ahead.perform(
        ahead.switch("1", "a"),
        ahead.switch("0", "a"),
        ahead.unregister(first),
        ahead.switch("1", "b"),
        ahead.unregister(second),
    )
    assert answers == [{"1": 1}, {"1": 1}, {"0": 1}, {"1": 1}, {"0": 1}]
    assert (first.wait(), second.wait()) == (0, 0)
    ue.tracefs.disable(ue.name("b"))
    ahead.data.close()
    assert ue.tracefs.status(eventually=True) == f"{ue.name('kept')}\n"
    ahead.task.exit()
    assert ue.tracefs.status(eventually=True) == ""


@case(doc="Unregistering: disables the bit at the address", tier="quick")
@spec("user_events_ioctl_unreg: user_event_mm_clear_bit, also of a word that waits for its page")
def test_unregistered_behind_a_copy(ue: UserEvents) -> None:
    """The bit of a word unregistered while its page, shared since fork, is being copied is clear:
    disabling the event has not cleared it.
    """
    ahead = _Ahead(ue)
    word = ahead.data.register(ue.name(), bit=4).word
    ue.tracefs.enable(ue.name())
    assert word.value == 16
    switch, unregister = ahead.switch("0"), ahead.unregister(word)
    child = ahead.task.fork_task()
    assert ahead.perform(switch, unregister) == [{"1": 1}, {"0": 1}]
    assert word.wait() == 0
    assert Word(child, word.address).wait() == 0


@case(doc="Deleting: events auto-delete when no references are left", needs="auto_delete")
@spec("user_event_mm_fault_in: no tasks; trace_events_user.c:user_event_enabler_fault_fixup")
def test_exit_behind_a_fault(ue: UserEvents) -> None:
    """A process that exits while its page is faulted in drops the references of all its words."""
    ahead = _Ahead(ue)
    ahead.task.open_data().register(ue.name("other"))
    ahead.awaited()
    end = Exit(ahead.task.actor)
    assert ahead.perform(ahead.switch("1"), end) == [{"1": 1}, {"0": 1}]
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status(eventually=True) == ""


@case(tier="quick", level="behaviour")
@doc("Registering: silent about an address and bit that are in use")
@spec("user_event_enabler_exists; trace_events_user.c:user_events_ioctl_unreg")
def test_registered_behind_a_fault(ue: UserEvents) -> None:
    """A word unregistered while it waits for its page is in use until then: EADDRINUSE."""
    ahead = _Ahead(ue)
    steps: list[Operation] = []
    for stem in ("a", "b"):
        word = ahead.awaited(stem)
        again = ahead.prepared.register(ahead.data, ue.name("c"), word=word, bit=4)
        steps += ahead.switch("1", stem), ahead.unregister(word), again
    answers = ahead.perform(*steps)
    # A host that stops the guest for a second lets the worker run.
    assert {"EADDRINUSE": 1} in answers[2::3]


@case(needs="auto_delete", tier="quick")
@spec("delayed_destroy_user_event: looks again whether it was the last")
@doc("Deleting: events auto-delete when no references are left")
def test_registered_behind_the_last(ue: UserEvents) -> None:
    """Registering an event right after its last reference was dropped keeps it alive, until the
    new reference is dropped.
    """
    ahead = _Ahead(ue)
    other = ahead.task.open_data()
    calls: list[Operation] = []
    # Two: a call that has to wait lets the worker come between it and the next.
    for stem in ("a", "b"):
        data = ahead.task.open_data()
        data.unregister(data.register(f"{ue.name(stem)} u32 v").word)
        calls += (
            ahead.prepared.close(data),
            ahead.prepared.register(other, f"{ue.name(stem)} u32 v"),
        )
    assert ahead.perform(*calls) == [{"0": 1}] * 4
    for index, stem in enumerate(("a", "b")):
        assert other.delete(ue.name(stem)).errno == "EBUSY"
        ue.tracefs.enable(ue.name(stem))
        assert other.write_event(index, b"\1\0\0\0").value == 8
        ue.tracefs.disable(ue.name(stem))
    ahead.task.exit()
    assert ue.tracefs.status(eventually=True) == ""
