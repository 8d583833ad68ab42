"""execve(2): registrations end; inherited descriptors keep their events and indices."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.doomed_event import process_with_event, status_after
from conformance.client.tasks import first_task
from conformance.ops import View
from conformance.ops.tasks import CLONE_FILES, CLONE_VM

DOC = "Unregistering: execve() unregisters; silent about threads and other processes"
EXECVE = "Registering: write_index is unique to the descriptor; silent about execve()"
case = surface("tasks", doc=DOC, level="behaviour", profiles="6.4..", tier="full")


@case(spec="include/linux/user_events.h:user_events_execve", level="contract", tier="quick")
@doc("Unregistering: execve() unregisters all events of the process")
def test_exec_unregisters(ue: UserEvents) -> None:
    """A new program has nothing registered, and can register what the old one had."""
    task = first_task(ue)
    event = ue.event(bit=3, of=task)
    task.keep_over_exec(event.data)
    assert task.execute().errno == ""
    assert event.unregister().errno == "ENOENT"
    new = event.data.register(ue.name(), bit=3, word=task.word_at(event.word.address))
    assert (new.errno, new.index) == ("", 0)
    ue.tracefs.enable(ue.name())
    assert new.word.value == 8


@case(level="contract", needs="empty_payload")
@spec("include/linux/user_events.h:user_events_execve")
@doc("Unregistering: execve() unregisters all events of the process")
def test_exec_memory_left_alone(ue: UserEvents) -> None:
    """Memory of a new program at the old address is not written."""
    task = first_task(ue)
    event = ue.event(bit=3, of=task)
    task.keep_over_exec(event.data)
    task.execute()
    word = task.word_at(event.word.address)
    assert ue.tracefs.enable(ue.name()).value == 2
    assert word.wait() == 0
    assert event.data.write_event(0).value == 4


@case(spec="user_event_mm_remove", level="contract", needs="auto_delete")
@doc("Unregistering: execve() unregisters all events of the process;")
@doc("Deleting: without references the event is deleted")
@variants({"closed": False, "kept": True})
def test_exec_releases(ue: UserEvents, kept: bool) -> None:
    """execve deletes an event unless a descriptor stays open."""
    passing = process_with_event(ue)
    task = first_task(ue)
    data = ue.event(of=task).data
    if kept:
        task.keep_over_exec(data)
    task.execute()
    assert status_after(ue, passing) == (ue.name() + "\n" if kept else "")
    assert data.close().errno == ("" if kept else "EBADF")
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="include/linux/user_events.h:user_events_execve", doc=EXECVE, profiles="5.18..")
@variants("task", "vfork", "thread")
def test_exec_keeps_the_index(ue: UserEvents, kind: str) -> None:
    """A new program writes with the indices of an inherited descriptor, and continues them."""
    task = first_task(ue)
    data = ue.event("u64 a", "a", of=task).data
    data.register(ue.name() + " u32 a")
    task.keep_over_exec(data)
    program = task.vfork() if kind == "vfork" else task
    program = task.thread() if kind == "thread" else program
    program.execute()
    inherited = data.of(program)
    ue.tracefs.enable(ue.name())
    assert inherited.write_event(1, b"\x07\0\0\0").value == 8
    assert inherited.write_event(2, b"\x07\0\0\0").errno == "ENOENT"
    assert inherited.register(ue.name("c")).index == 2
    assert ue.tracefs.records() == [ue.line("a=0x7 (7)", dump="07 00 00 00")]


@case(spec="include/linux/user_events.h:user_events_execve; fs/exec.c:bprm_execve")
@doc("Unregistering: execve() unregisters; silent about one that fails")
@variants(
    # The mailboxes of tasks: zeros.
    ("no_program", "/proc/self/fd/900", "ENOEXEC"),
    ("missing", "/nonexistent", "ENOENT"),
    ("directory", "/proc", "EACCES"),
    ("not_executable", "/sys/kernel/tracing/user_events_status", "EACCES"),
)
def test_exec_refused(ue: UserEvents, path: str, error: str) -> None:
    """A failed execve ends no registration and closes no descriptor."""
    task = first_task(ue)
    event = ue.event(bit=1, of=task)
    assert task.execute(path).errno == error
    ue.tracefs.enable(ue.name())
    assert event.word.value == 2
    assert event.data.register(ue.name("next")).index == 1
    assert event.unregister().value == 0


@case(spec="user_event_mm_remove; fs/exec.c:begin_new_exec", needs="auto_delete")
@variants({"by_leader": False, "by_thread": True})
def test_exec_ends_threads(ue: UserEvents, by_thread: bool) -> None:
    """execve of one thread ends the registrations of all threads of its process."""
    passing, leader = process_with_event(ue), first_task(ue)
    older = leader.thread()
    leader.open_data().register(ue.name("leader"), bit=0)
    older.open_data().register(ue.name("thread"), bit=1)
    (older if by_thread else leader).execute()
    assert status_after(ue, passing) == ""


@case(spec="fs/exec.c:de_thread", level="detail")
def test_exec_takes_the_thread_id(ue: UserEvents) -> None:
    """A thread that calls execve writes its records with the thread id of its leader."""
    leader = first_task(ue)
    thread = leader.thread()
    data = ue.event("u8 a", of=leader).data
    leader.keep_over_exec(data)
    ue.tracefs.enable(ue.name())
    data.write_event(0, b"\1")
    data.of(thread).write_event(0, b"\2")
    thread.execute()
    data.of(thread).write_event(0, b"\3")
    shown = ue.tracefs.read(ue.tracefs.path("trace"), View.RECORDS).text.splitlines()
    tasks = [line.split(": ")[0] for line in shown if ue.prefix in line]
    assert tasks == ["task 1", "task 2", "task 1"]


@case(spec="user_event_mm_remove", needs="auto_delete")
def test_exec_beside_shared_memory(ue: UserEvents) -> None:
    """After execve a process that shared the memory keeps the enablers; its bits are updated."""
    passing = process_with_event(ue)
    task = first_task(ue)
    event = ue.event(bit=2, of=task)
    other = task.make(CLONE_VM)
    event.data.of(other).close()
    task.execute()
    assert status_after(ue, passing) == ue.name() + "\n"
    ue.tracefs.enable(ue.name())
    assert other.load_number(event.word.address, 4) == 4
    assert other.open_data().unregister(event.word.address, bit=2).value == 0


@case(spec="include/linux/user_events.h:user_events_execve", level="contract", needs="auto_delete")
@doc("Unregistering:")
@doc("execve() unregisters all events of the process, and fork() retains those of the parent")
def test_exec_of_a_forked_child(ue: UserEvents) -> None:
    """execve of a forked child ends its copies; the parent's registration stays."""
    task = first_task(ue)
    word = task.open_data().register(ue.name(), bit=6).word
    task.fork_task().execute()
    ue.tracefs.enable(ue.name())
    assert word.wait() == 64
    task.exit()
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="user_event_mm_remove")
@doc("Unregistering: execve() unregisters; silent about the last value of the bit")
def test_exec_leaves_the_bit(ue: UserEvents) -> None:
    """execve does not clear the bit in shared memory."""
    parent = first_task(ue)
    shared = parent.map(shared=True)
    parent.store(shared, bytes(4))
    child = parent.fork_task()
    child.open_data().register(ue.name(), bit=5, word=child.word_at(shared, value=None))
    ue.tracefs.enable(ue.name())
    assert parent.load_number(shared, 4) == 32
    child.execute()
    ue.tracefs.disable(ue.name())
    assert parent.load_number(shared, 4) == 32


@case(spec="fs/exec.c:begin_new_exec", doc=EXECVE, level="detail", profiles="5.18..")
@variants({"memory": CLONE_VM | CLONE_FILES, "descriptors_alone": CLONE_FILES})
def test_exec_beside_shared_descriptors(ue: UserEvents, flags: int) -> None:
    """execve closes descriptors in a copy of the table: a process that shared it keeps them."""
    task = first_task(ue)
    data, kept = task.open_data(), task.open_data()
    data.register(ue.name("a"))
    task.keep_over_exec(kept)
    other = task.make(flags)
    other.execute()
    assert data.of(other).close().errno == "EBADF"
    assert kept.of(other).register(ue.name("b")).index == 0
    assert data.register(ue.name("c")).index == 1
    assert kept.close().errno == ""
    assert kept.of(other).register(ue.name("c")).index == 1
