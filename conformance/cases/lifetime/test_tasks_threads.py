"""Threads, and processes that share memory, share one list of enablers.

With a known bug a task that is older than the first registration has a list of its own.
"""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.doomed_event import process_with_event, status_after
from conformance.client.tasks import first_task
from conformance.ops.tasks import CLONE_FILES, CLONE_SIGHAND, CLONE_VM, THREAD

DOC = "Registering: speaks of processes; silent about threads and shared memory"
THREADS = "Registering: write_index is unique to the descriptor; silent about threads"
case = surface("tasks", doc=DOC, level="behaviour", profiles="6.4..", tier="full")


@case(tier="quick", switch="registration-of-a-thread")
@spec("include/linux/user_events.h:user_events_fork")
def test_older_thread_has_its_own(ue: UserEvents) -> None:
    """A thread older than the first registration finds address and bit in use: EADDRINUSE."""
    leader = first_task(ue)
    older = leader.thread()
    first = leader.open_data().register(ue.name("a"), bit=3)
    second = older.open_data().register(ue.name("b"), bit=3, word=first.word)
    errno = ue.bug("registration-of-a-thread", fixed="EADDRINUSE", present="")
    assert (first.errno, second.errno) == ("", errno)
    ue.tracefs.enable(ue.name("a"))
    assert first.word.value == 8
    if not errno:
        ue.tracefs.enable(ue.name("b"))
        ue.tracefs.disable(ue.name("b"))
        assert first.word.value == 0


@case(spec="user_events_ioctl_unreg", bug="registration-of-a-thread")
@variants({"of_leader": True, "of_thread": False})
def test_older_thread_unregisters(ue: UserEvents, by_thread: bool) -> None:
    """Leader and older thread can unregister each other's words."""
    leader = first_task(ue)
    older = leader.thread()
    owner, other = (leader, older) if by_thread else (older, leader)
    event = ue.event(bit=1, of=owner)
    errno = ue.bug("registration-of-a-thread", fixed="", present="ENOENT")
    assert other.open_data().unregister(event.word, bit=1).errno == errno
    ue.tracefs.enable(ue.name())
    assert event.word.value == (2 if errno else 0)
    assert event.unregister().errno == ("" if errno else "ENOENT")
    assert event.word.value == 0


@case(spec="user_event_mm_get_all")
def test_older_thread_follows(ue: UserEvents) -> None:
    """One event with words in two lists of one process updates both words."""
    leader = first_task(ue)
    older = leader.thread()
    one = leader.open_data().register(ue.name(), bit=0).word
    two = older.open_data().register(ue.name(), bit=31).word
    ue.tracefs.enable(ue.name())
    assert (one.value, two.value) == (1, 0x80000000)
    ue.tracefs.disable(ue.name())
    assert (one.value, two.value) == (0, 0)


@case(spec="user_event_mm_remove", needs="auto_delete", bug="registration-of-a-thread")
def test_older_thread_ends(ue: UserEvents) -> None:
    """The registrations of an older thread outlive it, as long as tasks share its memory."""
    passing, leader = process_with_event(ue), first_task(ue)
    older = leader.thread()
    kept = leader.open_data().register(ue.name("kept"), bit=0).word
    data = older.open_data()
    lost = data.register(ue.name("lost"), bit=5, word=older.word()).word
    ue.tracefs.enable(ue.name("lost"))
    data.close()
    older.end()
    # With the bug its bit stays, and its event is deleted.
    ends = ue.bug("registration-of-a-thread", fixed=False, present=True)
    passing.exit()
    ue.tracefs.disable(ue.name("lost"))
    left = ["kept"] if ends else ["kept", "lost"]
    lines = ue.tracefs.status(eventually=True).splitlines()
    assert sorted(lines) == [ue.name(name) for name in left]
    assert leader.load_number(lost.address, 4) == (32 if ends else 0)
    ue.tracefs.enable(ue.name("kept"))
    assert kept.value == 1


@case(spec="user_event_mm_remove", bug="registration-of-a-thread")
def test_older_leader_ends(ue: UserEvents) -> None:
    """The registrations of a leader outlive it while an older thread lives on."""
    leader = first_task(ue)
    older = leader.thread()
    lost = leader.open_data().register(ue.name("lost"), bit=0).word
    kept = older.open_data().register(ue.name("kept"), bit=1).word
    leader.end()
    ue.enable("lost", "kept")
    assert older.load_number(lost.address, 4) == ue.bug(
        "registration-of-a-thread", fixed=1, present=0
    )
    assert kept.value == 2


@case(spec="current_user_event_mm", level="detail")
@variants(("name", "x" * 512, "EINVAL"), ("field", "x long a", "EINVAL"))
def test_refused_registration_begins_a_list(ue: UserEvents, definition: str, error: str) -> None:
    """A registration that fails after the address check makes later threads share the list."""
    leader = first_task(ue)
    data = leader.open_data()
    assert data.register(ue.name(definition)).errno == error
    thread = leader.thread()
    event = data.register(ue.name(), bit=2)
    again = thread.open_data().register(ue.name("other"), bit=2, word=event.word)
    assert again.errno == "EADDRINUSE"


@case(spec="include/linux/user_events.h:user_events_fork", level="detail")
@variants({"task": False, "child": True})
def test_emptied_list_is_shared(ue: UserEvents, forked: bool) -> None:
    """After a first registration, later threads share the list even if it is empty again."""
    task = first_task(ue)
    data = task.open_data()
    data.unregister(data.register(ue.name("passing")).word)
    task = task.fork_task() if forked else task
    thread = task.thread()
    word = thread.open_data().register(ue.name(), bit=2).word
    assert task.open_data().register(ue.name("b"), bit=2, word=word).errno == "EADDRINUSE"
    thread.end()
    ue.tracefs.enable(ue.name())
    assert task.load_number(word.address, 4) == 4


@case(spec="current_user_event_mm", level="detail", bug="registration-of-a-thread")
@variants(("bit", 4, 0, 32), ("enable-size", 3, 0, 0), ("flags", 4, 0x8000, 0))
def test_early_refusal_begins_no_list(ue: UserEvents, size: int, flags: int, bit: int) -> None:
    """After a registration that fails for its structure, threads share the list all the same."""
    leader = first_task(ue)
    data = leader.open_data()
    assert data.register(ue.name(), bit=bit, flags=flags, enable_size=size).errno == "EINVAL"
    thread = leader.thread()
    event = data.register(ue.name(), bit=2)
    again = thread.open_data().register(ue.name("other"), bit=2, word=event.word)
    assert again.errno == ue.bug("registration-of-a-thread", fixed="EADDRINUSE", present="")


@case(spec="include/linux/user_events.h:user_events_fork", tier="quick")
@variants(
    ("memory", CLONE_VM),
    ("thread", THREAD),
    ("memory_and_descriptors", CLONE_VM | CLONE_FILES),
    ("memory_and_handlers", CLONE_VM | CLONE_SIGHAND),
)
def test_later_thread_shares(ue: UserEvents, flags: int) -> None:
    """Tasks that share memory share registrations: what one unregisters is gone for the others."""
    leader = first_task(ue)
    data = leader.open_data()
    word = data.register(ue.name(), bit=3).word
    later = leader.make(flags)
    assert data.of(later).register(ue.name("other"), bit=3, word=word).errno == "EADDRINUSE"
    assert data.of(later).unregister(word, bit=3).value == 0
    assert data.unregister(word, bit=3).errno == "ENOENT"
    ue.tracefs.enable(ue.name())
    assert word.value == 0


@case(spec="include/linux/user_events.h:user_events_fork")
@variants({"thread": THREAD, "memory": CLONE_VM})
def test_later_thread_registers(ue: UserEvents, flags: int) -> None:
    """A registration of a later task outlives it, as long as tasks share its memory."""
    leader = first_task(ue)
    leader.open_data().register(ue.name("first"))
    later = leader.make(flags)
    word = later.open_data().register(ue.name(), bit=4).word
    later.end()
    ue.tracefs.enable(ue.name())
    assert leader.load_number(word.address, 4) == 16
    ue.tracefs.disable(ue.name())
    assert leader.load_number(word.address, 4) == 0
    assert leader.open_data().unregister(word.address, bit=4).value == 0


@case(spec="user_event_mm_remove")
@variants({"thread": THREAD, "memory": CLONE_VM})
def test_leader_ends_before_threads(ue: UserEvents, flags: int) -> None:
    """Registrations outlive their leader while a later task shares its memory."""
    leader = first_task(ue)
    word = leader.open_data().register(ue.name(), bit=6).word
    later = leader.make(flags)
    leader.end()
    ue.tracefs.enable(ue.name())
    assert later.load_number(word.address, 4) == 64
    assert later.open_data().unregister(word.address, bit=6).value == 0
    assert later.load_number(word.address, 4) == 0


@case(spec="user_event_mm_remove", needs="auto_delete", tier="quick")
def test_last_thread_ends(ue: UserEvents) -> None:
    """The event is deleted with the last task that shares its registration, not before."""
    passing, leader = process_with_event(ue), first_task(ue)
    leader.open_data().register(ue.name())
    one, two = leader.thread(), leader.thread()
    leader.end()
    two.end()
    assert status_after(ue, passing) == ue.name() + "\n"
    one.end()
    assert ue.tracefs.status(eventually=True) == ""


@case(needs="auto_delete", bug="registration-of-a-thread")
@spec("include/linux/user_events.h:user_events_fork")
def test_sharer_alone(ue: UserEvents) -> None:
    """A process that shares memory with an unregistered one shares its list, too."""
    passing, leader = process_with_event(ue), first_task(ue)
    other = leader.make(CLONE_VM)
    word = other.open_data().register(ue.name(), bit=1).word
    passing.exit()
    other.end()
    ends = ue.bug("registration-of-a-thread", fixed=False, present=True)
    assert ue.tracefs.status(eventually=True) == ("" if ends else f"{ue.name()}\n")
    assert leader.open_data().unregister(word.address, bit=1).errno == ("ENOENT" if ends else "")


@case(spec="user_events_release", doc=THREADS, profiles="5.18..")
def test_thread_closes(ue: UserEvents) -> None:
    """A thread closes its process's descriptor; a task that shares only memory closes its own."""
    leader = first_task(ue)
    data, other = leader.open_data(), leader.open_data()
    thread, neighbour = leader.thread(), leader.make(CLONE_VM)
    data.register(ue.name("a"))
    other.register(ue.name("b"))
    data.of(neighbour).close()
    assert data.register(ue.name("c")).index == 1
    data.of(thread).close()
    assert data.register(ue.name("d")).errno == "EBADF"
    assert other.of(neighbour).register(ue.name("d")).index == 1


@case(spec="user_events_ref_add", doc=THREADS, profiles="5.18..")
def test_thread_uses_the_index(ue: UserEvents) -> None:
    """A thread, older or later, writes with the leader's index."""
    leader = first_task(ue)
    data = leader.open_data()
    older = leader.thread()
    data.register(ue.name("first") + " u64 a")
    assert data.register(ue.name() + " u32 a").index == 1
    later = leader.thread()
    ue.tracefs.enable(ue.name())
    assert data.of(older).write_event(1, b"\x05\0\0\0").value == 8
    assert data.of(later).write_event(1, b"\x06\0\0\0").value == 8
    assert ue.tracefs.records() == [
        ue.line("a=0x5 (5)", dump="05 00 00 00"),
        ue.line("a=0x6 (6)", dump="06 00 00 00"),
    ]


@case(spec="include/linux/user_events.h:user_events_fork", tier="quick")
def test_descriptors_shared_alone(ue: UserEvents) -> None:
    """Tasks that share descriptors but no memory have separate lists, copied at fork."""
    task = first_task(ue)
    data = task.open_data()
    word = data.register(ue.name(), bit=3).word
    other = task.make(CLONE_FILES)
    copy = other.word_at(word.address, value=0)
    assert data.of(other).unregister(copy, bit=3).value == 0
    assert data.of(other).register(ue.name("b")).index == 1
    assert data.register(ue.name("b"), bit=1).index == 1
    ue.tracefs.enable(ue.name())
    assert (word.wait(), copy.wait()) == (8, 0)
    data.of(other).close()
    assert data.unregister(word, bit=3).errno == "EBADF"


@case(spec="user_event_mm_dup", bug="registration-of-a-thread")
@doc("Unregistering: fork() retains registered events; silent about threads")
def test_fork_of_an_older_thread(ue: UserEvents) -> None:
    """A child inherits the registrations of the forking thread and those of its leader."""
    leader = first_task(ue)
    older = leader.thread()
    mine = leader.open_data().register(ue.name("leader"), bit=0).word
    event = ue.event(name="thread", bit=1, of=older)
    child = older.fork_task()
    errno = ue.bug("registration-of-a-thread", fixed="", present="ENOENT")
    assert event.data.of(child).unregister(mine.address, bit=0).errno == errno
    assert event.data.of(child).unregister(event.word.address, bit=1).value == 0


@case(spec="user_event_mm_dup", level="contract")
@doc("Unregistering: fork() retains registered events; each process unregisters its own")
def test_fork_of_a_later_thread(ue: UserEvents) -> None:
    """A child of a later thread inherits a copy of the leader's registrations."""
    leader = first_task(ue)
    event = ue.event(bit=2, of=leader)
    child = leader.thread().fork_task()
    copy = child.word_at(event.word.address, value=0)
    ue.tracefs.enable(ue.name())
    assert (copy.wait(), event.word.wait()) == (4, 4)
    assert event.data.of(child).unregister(copy, bit=2).value == 0
    assert event.unregister().value == 0
