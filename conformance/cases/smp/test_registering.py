"""Two CPUs: concurrent registration of names, words and indices."""

import os
from string import ascii_letters, digits

from conformance import ops
from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.registration import MULTI_FORMAT
from conformance.cases.support.smp import Racers, enable_file
from conformance.client.data_file import DataFile
from conformance.client.races import race, track
from conformance.client.tracefs import DYNAMIC_EVENTS, STATUS
from conformance.ops.tasks import CLONE_VM, THREAD

DOC = "Deleting: delete succeeds only without references, in user and kernel space"
case = surface("smp", doc=DOC, level="contract", tier="full", facilities="smp")

NAMES = ("a", "b", "c")
MORE_NAMES = (*NAMES, "d", "e")


@case(spec="user_events_ioctl: reg_mutex; find_user_event", level="behaviour")
@doc("Registering: silent about equal registrations without MULTI_FORMAT")
@variants({"threads": THREAD, "memory": CLONE_VM, "processes": 0})
def test_same_definition(ue: UserEvents, flags: int) -> None:
    """Two tasks that register the same definition concurrently share one event."""
    both = Racers(ue, flags)
    sides = []
    for task, prepared in ((both.left, both.prepared_left), (both.right, both.prepared_right)):
        data = task.open_data()
        sides.append([prepared.register(data, f"{ue.name(name)} u32 v") for name in NAMES])
    assert both.race(*sides) == [[{"0": 1}, {"0": 1}, {"0": 1}]] * 2
    lines = [f"u:{ue.name(name)} u32 v" for name in NAMES]
    assert sorted(ue.tracefs.dynamic_events().splitlines()) == lines


@case(spec="user_events_ioctl: reg_mutex; find_user_event", level="behaviour")
@doc("Registering: silent about equal registrations without MULTI_FORMAT")
def test_same_long_definition(ue: UserEvents) -> None:
    """Two tasks that register definitions of 62 fields concurrently share one event each."""
    both = Racers(ue)
    fields = "; ".join(f"u8 {name}" for name in ascii_letters + digits)
    names = [f"e{number}" for number in range(10)]
    mine, its = both.open_data()
    left = [both.prepared_left.register(mine, f"{ue.name(name)} {fields}") for name in names]
    right = [both.prepared_right.register(its, f"{ue.name(name)} {fields}") for name in names]
    assert both.race(left, right) == [[{"0": 1}] * 10] * 2
    shown = [line.partition(" ")[0] for line in ue.tracefs.dynamic_events().splitlines()]
    assert sorted(shown) == sorted(f"u:{ue.name(name)}" for name in names)


@case(level="behaviour", profiles="6.4..", needs="arguments_matched")
@spec("user_events_ioctl: reg_mutex; user_event_match")
@doc("Registering: without MULTI_FORMAT another format is blocked; silent about the error")
@variants({"threads": THREAD, "processes": 0})
def test_different_definitions(ue: UserEvents, flags: int) -> None:
    """Of two tasks that register different definitions of one name, one gets EADDRINUSE."""
    both = Racers(ue, flags)
    mine, its = both.open_data()
    left = [both.prepared_left.register(mine, f"{ue.name(name)} u32 v") for name in NAMES]
    right = [both.prepared_right.register(its, f"{ue.name(name)} u64 v") for name in NAMES]
    left_answers, right_answers = both.race(left, right)
    pairs = [sorted([*one, *other]) for one, other in zip(left_answers, right_answers, strict=True)]
    assert pairs == [["0", "EADDRINUSE"]] * 3
    types = {"0": "u32", "EADDRINUSE": "u64"}
    lines = [
        f"u:{ue.name(name)} {types[errno]} v"
        for name, answers in zip(NAMES, left_answers, strict=True)
        for errno in answers
    ]
    assert sorted(ue.tracefs.dynamic_events().splitlines()) == lines


@case(profiles="6.9..", needs="multi_format")
@spec("user_events_ioctl: reg_mutex; user_event_set_tp_name")
@doc("Registering: with MULTI_FORMAT each unique pair of name and format has its tracepoint")
def test_different_formats(ue: UserEvents) -> None:
    """Two formats of one name registered concurrently become two events."""
    both = Racers(ue)
    calls = [
        prepared.register(task.open_data(), f"{ue.name()} {kind} v", flags=MULTI_FORMAT)
        for task, prepared, kind in (
            (both.left, both.prepared_left, "u32"),
            (both.right, both.prepared_right, "u64"),
        )
    ]
    assert both.race(calls[:1], calls[1:]) == [[{"0": 1}], [{"0": 1}]]
    assert len(ue.tracefs.dynamic_events().splitlines()) == 2


@case(level="behaviour", profiles="6.4..")
@spec("user_events_ioctl: reg_mutex; current_user_event_enabler_exists")
@doc("Registering: silent about an address and bit that are in use")
@variants({"threads": THREAD, "memory": CLONE_VM})
def test_one_word_and_bit(ue: UserEvents, flags: int) -> None:
    """Of two tasks that share memory and register the same bit concurrently, one succeeds."""
    both = Racers(ue, flags, registered=True)
    word = both.left.word()
    mine, its = both.open_data()
    left = [both.prepared_left.register(mine, ue.name("a"), word=word, bit=bit) for bit in (0, 4)]
    right = [both.prepared_right.register(its, ue.name("b"), word=word, bit=bit) for bit in (0, 4)]
    one, other = both.race(left, right)
    pairs = [sorted([*mine, *its]) for mine, its in zip(one, other, strict=True)]
    assert pairs == [["0", "EADDRINUSE"]] * 2


@case(spec="user_events_ioctl: reg_mutex; user_events_ref_add", profiles="6.4..")
@doc("Registering: write_index is unique to the file descriptor used")
def test_indices_of_one_file(ue: UserEvents) -> None:
    """Threads that register through one descriptor concurrently get an index each."""
    both = Racers(ue)
    data = both.left.open_data()
    left = [both.prepared_left.register(data, ue.name(name)) for name in ("a", "b")]
    right = [both.prepared_right.register(data, ue.name(name)) for name in ("c", "d")]
    assert both.race(left, right) == [[{"0": 1}, {"0": 1}]] * 2
    indices = [both.left.load_number(call.argument + 24, 4) for call in (*left, *right)]
    assert sorted(indices) == [0, 1, 2, 3]


@case(spec="user_events_ioctl_del: reg_mutex; delete_user_event", needs="lasting_events")
def test_deleted_while_registered(ue: UserEvents) -> None:
    """If an event is deleted while another task registers it, the registration is valid."""
    both = Racers(ue)
    for name in MORE_NAMES:
        ue.tracefs.command(f"u:{ue.name(name)} u32 v")
    data, other = both.open_data()
    gone = [both.prepared_left.delete(data, ue.name(name)) for name in MORE_NAMES]
    calls = [both.prepared_right.register(other, f"{ue.name(name)} u32 v") for name in MORE_NAMES]
    deleted, registered = both.race(gone, calls)
    assert registered == [{"0": 1}] * 5
    assert {answer for tally in deleted for answer in tally} <= {"0", "EBUSY"}
    for index, name in enumerate(MORE_NAMES):
        assert data.delete(ue.name(name)).errno == "EBUSY"
        ue.tracefs.enable(ue.name(name))
        assert other.write_event(index, b"\1\0\0\0").value == 8
        ue.tracefs.disable(ue.name(name))


@case(spec="user_seq_show: reg_mutex", level="behaviour")
@doc("Status: reading user_events_status shows the events; silent about registrations meanwhile")
def test_status_while_registered(ue: UserEvents) -> None:
    """A read of user_events_status waits for a registration in progress: it never fails."""
    both = Racers(ue)
    data = both.right.open_data()
    data.register(f"{ue.name()} u32 v")
    _, slot = both.left.open(STATUS)
    again = ops.Lseek(both.left.actor, slot, 0, os.SEEK_SET)
    read = ops.Read(both.left.actor, slot, 1)
    refused = both.prepared_right.register(data, f"{ue.name('refused')} u32 v; unknown w")
    answers = race(
        both.left, track(both.left, again, read, passes=300), track(both.right, refused, passes=600)
    )
    assert answers == [[{"0": 300}, {"1": 300}], [{"EINVAL": 600}]]


@case(spec="user_event_create: reg_mutex", level="behaviour")
@doc("Overview: silent about a command for an existing event")
def test_defined_while_registered(ue: UserEvents) -> None:
    """A definition given by command and by registration concurrently is one event."""
    both = Racers(ue)
    commands = [
        both.prepared_left.command(DYNAMIC_EVENTS, f"u:{ue.name(name)} u32 v")
        for name in MORE_NAMES
    ]
    other = both.right.open_data()
    calls = [both.prepared_right.register(other, f"{ue.name(name)} u32 v") for name in MORE_NAMES]
    defined, registered = both.race(commands, calls)
    assert registered == [{"0": 1}] * 5
    assert [list(tally.values()) for tally in defined] == [[1]] * 5
    lines = [f"u:{ue.name(name)} u32 v" for name in MORE_NAMES]
    assert sorted(ue.tracefs.dynamic_events().splitlines()) == lines


@case(needs="lasting_events")
@spec("user_event_parse: find_user_event under event_mutex; user_event_free")
def test_removed_while_registered(ue: UserEvents) -> None:
    """If an event is removed by command while another task registers it, it exists afterwards."""
    both = Racers(ue)
    for name in NAMES:
        ue.tracefs.command(f"u:{ue.name(name)} u32 v")
    gone = [both.prepared_left.command(DYNAMIC_EVENTS, f"-:{ue.name(name)}") for name in NAMES]
    data = both.right.open_data()
    calls = [both.prepared_right.register(data, f"{ue.name(name)} u32 v") for name in NAMES]
    _, registered = both.race(gone, calls)
    assert registered == [{"0": 1}] * 3
    for index, name in enumerate(NAMES):
        assert data.delete(ue.name(name)).errno == "EBUSY"
        ue.tracefs.enable(ue.name(name))
        assert data.write_event(index, b"\1\0\0\0").value == 8
        ue.tracefs.disable(ue.name(name))


@case(spec="user_events_ioctl_del: event_mutex", level="behaviour")
@doc("Deleting: the argument is the name of the event; silent about events that change meanwhile")
def test_deleted_while_switched(ue: UserEvents) -> None:
    """A deletion waits for another event that is being enabled: it fails with ENOENT or EBUSY only
    for the event that it names.
    """
    both = Racers(ue)
    data = both.left.open_data()
    data.register(ue.name())
    calls = [both.prepared_left.delete(data, ue.name(name)) for name in ("none", "e")]
    on, off = both.prepared_right.switch(enable_file(ue))
    answers = race(
        both.left, track(both.left, *calls, passes=300), track(both.right, on, off, passes=10)
    )
    assert answers == [[{"ENOENT": 300}, {"EBUSY": 300}], [{"1": 10}] * 2]


@case(level="detail", needs="lasting_events")
@spec("delete_user_event; trace.c:tracing_open_file_tr")
@doc("Deleting: delete succeeds only without references; silent about open files")
def test_deleted_while_opened(ue: UserEvents) -> None:
    """If an event is deleted while its file is opened, the open file has no effect."""
    both = Racers(ue)
    for name in NAMES:
        ue.tracefs.command(f"u:{ue.name(name)} u32 v")
    data = both.left.open_data()
    gone = [both.prepared_left.delete(data, ue.name(name)) for name in NAMES]
    opened = [both.prepared_right.open(enable_file(ue, name), os.O_WRONLY) for name in NAMES]
    deleted, answers = both.race(gone, opened)
    assert deleted == [{"0": 1}] * 3
    assert {answer for tally in answers for answer in tally} <= {"0", "ENOENT", "ENODEV"}
    for call, tally in zip(opened, answers, strict=True):
        # A task that came too late has no descriptor.
        errno = "ENODEV" if "0" in tally else "EBADF"
        assert DataFile(both.right, call.slot).write(b"1").errno == errno
    assert ue.tracefs.dynamic_events() == ""


@case(spec="user_events_release; delayed_destroy_user_event", profiles="6.4..", needs="auto_delete")
@doc("Deleting: events auto-delete when no references are left")
@variants({"threads": THREAD, "processes": 0})
def test_closed_while_registered(ue: UserEvents, flags: int) -> None:
    """Registering an event while its last descriptor is closed yields that event or a new one."""
    both = Racers(ue, flags)
    data, other = both.open_data()
    data.unregister(data.register(f"{ue.name()} u32 v").word)
    register = both.prepared_right.register(other, f"{ue.name()} u32 v")
    closing = both.prepared_left.close(data)
    assert both.race([closing], [register]) == [[{"0": 1}], [{"0": 1}]]
    ue.tracefs.enable(ue.name())
    assert other.write_event(0, b"\1\0\0\0").value == 8
