"""vfork(2): the child shares memory and list with its waiting parent.

With a known bug it has a list of its own if its parent had not registered.
"""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.doomed_event import process_with_event, status_after
from conformance.client.tasks import first_task
from conformance.ops.tasks import CLONE_VFORK

DOC = "Unregistering: fork() retains registered events; silent about vfork()"
case = surface("tasks", doc=DOC, level="behaviour", profiles="6.4..", tier="full")


@case(spec="include/linux/user_events.h:user_events_fork", tier="quick")
@variants({"exec": True, "exit": False})
def test_vfork_follows(ue: UserEvents, executes: bool) -> None:
    """The parent's word is followed during vfork, and after its child has exited."""
    parent = first_task(ue)
    word = parent.open_data().register(ue.name(), bit=3).word
    child = parent.vfork()
    ue.tracefs.enable(ue.name())
    assert child.load_number(word.address, 4) == 8
    if executes:
        assert child.execute().errno == ""
    else:
        child.exit()
    ue.tracefs.disable(ue.name())
    assert word.value == 0
    assert parent.open_data().unregister(word, bit=3).value == 0


@case(spec="include/linux/user_events.h:user_events_fork", level="contract", tier="quick")
@doc("Unregistering: during fork() registered events are retained;")
@doc("each process unregisters its own")
def test_vfork_copies(ue: UserEvents) -> None:
    """What a vfork child with memory of its own unregisters stays registered in its parent."""
    parent = first_task(ue)
    word = parent.open_data().register(ue.name(), bit=3).word
    child = parent.make(CLONE_VFORK)
    assert child.open_data().unregister(word, bit=3).value == 0
    child.exit()
    ue.tracefs.enable(ue.name())
    assert word.wait() == 8


@case(spec="include/linux/user_events.h:user_events_fork")
@variants({"exec": True, "exit": False})
def test_vfork_child_registers(ue: UserEvents, executes: bool) -> None:
    """Words that a vfork child registers stay with a parent that had registered before."""
    parent = first_task(ue)
    parent.open_data().register(ue.name("first"))
    child = parent.vfork()
    word = child.open_data().register(ue.name(), bit=2).word
    child.execute() if executes else child.exit()
    ue.tracefs.enable(ue.name())
    assert parent.load_number(word.address, 4) == 4
    assert parent.open_data().register(ue.name("other"), bit=2, word=word).errno == "EADDRINUSE"


@case(spec="user_event_mm_remove", bug="registration-of-a-thread")
@variants({"exec": True, "exit": False})
def test_vfork_child_registers_alone(ue: UserEvents, executes: bool) -> None:
    """Words that a vfork child registers stay with a parent that had registered nothing."""
    parent = first_task(ue)
    child = parent.vfork()
    word = child.open_data().register(ue.name(), bit=2).word
    child.execute() if executes else child.exit()
    ue.tracefs.enable(ue.name())
    ends = ue.bug("registration-of-a-thread", fixed=False, present=True)
    assert parent.load_number(word.address, 4) == (0 if ends else 4)
    assert parent.open_data().unregister(word.address, bit=2).errno == ("ENOENT" if ends else "")


@case(spec="user_event_mm_remove: tasks", needs="auto_delete", tier="quick")
@doc("Deleting: an event is deleted when no references are left; silent about vfork()")
@variants({"exec": True, "exit": False})
def test_vfork_child_holds_nothing(ue: UserEvents, executes: bool) -> None:
    """After its vfork child has gone its own way, the exit of a parent deletes its event."""
    parent = first_task(ue)
    parent.open_data().register(ue.name(), bit=6)
    child = parent.vfork()
    if executes:
        assert child.execute().errno == ""
    else:
        child.exit()
    assert status_after(ue, parent) == ""


@case(spec="user_event_mm_remove", needs="auto_delete", bug="registration-of-a-thread")
def test_vfork_child_leaves_its_bit(ue: UserEvents) -> None:
    """A bit set for a vfork child is cleared in its parent's memory when the event is disabled."""
    parent = first_task(ue)
    child = parent.vfork()
    word = child.open_data().register(ue.name(), bit=1).word
    ue.tracefs.enable(ue.name())
    child.exit()
    ue.tracefs.disable(ue.name())
    stays = ue.bug("registration-of-a-thread", fixed=False, present=True)
    assert ue.tracefs.status(eventually=True) == ("" if stays else f"{ue.name()}\n")
    assert parent.load_number(word.address, 4) == (2 if stays else 0)


@case(spec="user_events_ioctl_unreg")
def test_vfork_child_unregisters(ue: UserEvents) -> None:
    """A word that a vfork child unregisters is unregistered for its parent, unlike after fork."""
    parent = first_task(ue)
    event = ue.event(bit=5, enabled=True, of=parent)
    child = parent.vfork()
    assert event.data.of(child).unregister(event.word, bit=5).value == 0
    child.exit()
    assert event.word.value == 0
    assert event.unregister().errno == "ENOENT"


@case(spec="user_event_mm_remove")
def test_vfork_child_killed(ue: UserEvents) -> None:
    """A vfork child that is killed does not affect its parent."""
    parent = first_task(ue)
    event = ue.event(bit=7, of=parent)
    parent.vfork().kill()
    assert event.data.register(ue.name("next")).index == 1
    ue.tracefs.enable(ue.name())
    assert event.word.value == 128


@case(spec="user_events_release", profiles="5.18..")
@doc("Registering: write_index is unique to the descriptor; silent about vfork()")
def test_vfork_child_closes(ue: UserEvents) -> None:
    """A vfork child has its own descriptor table, and the open files of its parent."""
    parent = first_task(ue)
    data = ue.event(name="a", of=parent).data
    child = parent.vfork()
    assert data.of(child).register(ue.name("b")).index == 1
    data.of(child).close()
    child.exit()
    assert data.register(ue.name("c")).index == 2


@case(spec="user_event_mm_remove", needs="auto_delete")
def test_vfork_parent_killed(ue: UserEvents) -> None:
    """A parent killed while it waits leaves list and memory to its child."""
    passing = process_with_event(ue)
    parent = first_task(ue)
    event = ue.event(bit=4, of=parent)
    child = parent.vfork()
    event.data.of(child).close()
    parent.kill()
    assert status_after(ue, passing) == ue.name() + "\n"
    ue.tracefs.enable(ue.name())
    assert child.load_number(event.word.address, 4) == 16
    ue.tracefs.disable(ue.name())
    assert status_after(ue, child) == ""


@case(spec="include/linux/user_events.h:user_events_fork")
def test_vfork_of_a_child(ue: UserEvents) -> None:
    """vfork children of a vfork child share the one list of their grandparent."""
    parent = first_task(ue)
    data = parent.open_data()
    word = data.register(ue.name(), bit=0).word
    child = parent.vfork()
    grandchild = child.vfork()
    assert data.of(grandchild).register(ue.name("b"), word=word).errno == "EADDRINUSE"
    assert data.of(grandchild).unregister(word).value == 0
    grandchild.exit()
    assert data.of(child).unregister(word).errno == "ENOENT"
    child.exit()
    assert data.register(ue.name("b"), word=word).index == 1
