"""Death of processes that hold events: exit, exit_group, SIGKILL, at any moment."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.doomed_event import process_with_event, status_after
from conformance.client.tasks import first_task

SPEC = "user_event_mm_remove"
DOC = "Deleting: by default an event is deleted when no references are left"
case = surface(
    "tasks", SPEC, DOC, level="contract", profiles="6.4..", needs="auto_delete", tier="full"
)


@case
@variants({"descriptor_open": False, "descriptor_closed": True})
def test_killed(ue: UserEvents, closed: bool) -> None:
    """SIGKILL drops the descriptors and words of a process, as exit does."""
    task = first_task(ue)
    data = ue.event(name="a", of=task).data
    data.register(ue.name("b") + " u32 x")
    if closed:
        data.close()
    task.kill()
    assert ue.tracefs.status(eventually=True) == ""


@case(level="behaviour")
@doc("Registering: speaks of processes; silent about threads and shared memory")
@variants({"exit_by_leader": "leader", "exit_by_thread": "thread", "killed": "kill"})
def test_exit_of_all_threads(ue: UserEvents, end: str) -> None:
    """exit_group by any thread, and SIGKILL, end the registrations of all threads."""
    leader = first_task(ue)
    older = leader.thread()
    leader.open_data().register(ue.name("leader"), bit=0)
    later = leader.thread()
    older.open_data().register(ue.name("older"), bit=1)
    later.open_data().register(ue.name("later"), bit=2)
    if end == "kill":
        leader.kill()
    else:
        (later if end == "thread" else leader).exit()
    assert ue.tracefs.status(eventually=True) == ""


@case
def test_killed_while_enabled(ue: UserEvents) -> None:
    """An enabled event outlives its killed program, and is deleted when it is disabled."""
    passing = process_with_event(ue)
    task = first_task(ue)
    task.open_data().register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    task.kill()
    assert status_after(ue, passing) == ue.name() + " # Used by ftrace\n"
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status(eventually=True) == ""


@case(doc="Unregistering: fork() retains registered events; each process unregisters its own")
def test_killed_beside_its_child(ue: UserEvents) -> None:
    """A killed parent leaves its forked child all references that were copied."""
    passing = process_with_event(ue)
    parent = first_task(ue)
    word = parent.open_data().register(ue.name(), bit=9).word
    copy = parent.fork_task().word_at(word.address, value=None)
    parent.kill()
    assert status_after(ue, passing) == ue.name() + "\n"
    ue.tracefs.enable(ue.name())
    assert copy.wait() == 0x200


@case(doc="Deleting: silent about memory that went away", level="behaviour", tier="quick")
@variants({"exit": False, "killed": True})
def test_ended_with_a_word_missing(ue: UserEvents, killed: bool) -> None:
    """A process exits normally after a change that found its word unmapped."""
    task = first_task(ue)
    page = task.map()
    task.open_data().register(ue.name(), bit=1, word=task.word_at(page))
    task.unmap(page)
    assert ue.tracefs.enable(ue.name()).value == 2
    task.kill() if killed else task.exit()
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="user_event_mm_fault_in: no task is left", level="behaviour")
@doc("Deleting: silent about memory that is not there yet")
@variants({"exit": "exit", "killed": "kill", "exec": "exec"})
def test_ended_before_the_fix_up(ue: UserEvents, end: str) -> None:
    """A process may exit while its word is still to be faulted in, in both copies."""
    parent = first_task(ue)
    parent.open_data().register(ue.name(), bit=1)
    child = parent.fork_task()
    assert ue.tracefs.enable(ue.name()).value == 2
    for each in (child, parent):
        {"exit": each.exit, "kill": each.kill, "exec": each.execute}[end]()
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="delayed_destroy_user_event", level="behaviour", needs="auto_delete arguments_matched")
@doc("Deleting: an event is deleted when no references are left; silent about names in use")
def test_killed_releases_the_name(ue: UserEvents) -> None:
    """After its program is killed, the event's name can be registered with other fields."""
    task = first_task(ue)
    task.open_data().register(ue.name() + " u32 a")
    data = ue.open_data()
    assert data.register(ue.name() + " u64 a").errno == "EADDRINUSE"
    task.kill()
    assert ue.tracefs.status(eventually=True) == ""
    assert data.register(ue.name() + " u64 a").errno == ""
