"""Two CPUs: the enable word under concurrent changes, and concurrent writers."""

import struct

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.smp import Racers, enable_file
from conformance.cases.support.status_page import map_page
from conformance.client.addresses import PAGE
from conformance.client.races import race, track
from conformance.ops import Mprotect, View
from conformance.ops.race import Add
from conformance.ops.tasks import THREAD

DOC = "Status: the kernel updates the specified bit as tools attach to the event and detach from it"
case = surface("smp", doc=DOC, level="contract", tier="full", facilities="smp")


@case(spec="user_event_enabler_write: set_bit, clear_bit", profiles="6.4..")
@variants(
    ("low", 4, 0, 0, 2, 20_000_001),
    ("high", 4, 31, 0, 1, 0x80989680),
    ("of-64", 8, 63, 4, 1, 0x8098968000000000),
)
def test_neighbours(ue: UserEvents, size: int, bit: int, past: int, amount: int, left: int) -> None:
    """Atomic updates of other bits by the program survive while the kernel sets and clears one."""
    both = Racers(ue)
    word = both.left.open_data().register(ue.name(), bit=bit, word=both.left.word(size)).word
    on, off = both.prepared_right.switch(enable_file(ue))
    add = Add(both.left.actor, word.address + past, amount, times=500_000)
    answers = race(
        both.left, track(both.left, add, passes=20), track(both.right, off, on, passes=20)
    )
    assert answers == [[{"0": 20}], [{"1": 20}, {"1": 20}]]
    assert word.value == left


@case(spec="user_event_enabler_write: set_bit, clear_bit", profiles="6.4..")
def test_two_bits_of_a_word(ue: UserEvents) -> None:
    """Two events with bits in one word are switched concurrently: neither loses its bit."""
    both = Racers(ue)
    data = both.left.open_data()
    word = data.register(ue.name("a"), bit=0).word
    data.register(ue.name("b"), bit=7, word=word)
    first = both.prepared_left.switch(enable_file(ue, "a"))
    second = both.prepared_right.switch(enable_file(ue, "b"))
    answers = race(
        both.left,
        track(both.left, *reversed(first), passes=20),
        track(both.right, *reversed(second), passes=20),
    )
    assert answers == [[{"1": 20}, {"1": 20}], [{"1": 20}, {"1": 20}]]
    assert word.value == 0x81


@case(spec="update_reg_page_for: under event_mutex", profiles="5.18..6.3")
@doc("@v6.1: Status: the bit of status_bit tells whether anything is attached to that event")
@variants({"threads": THREAD, "processes": 0})
def test_two_places_of_a_page(ue: UserEvents, flags: int) -> None:
    """Two events with adjacent words are switched concurrently: each word is right."""
    both = Racers(ue, flags)
    page = map_page(both.left)
    data = both.left.open_data()
    first = data.register(ue.name("a"))
    second = data.register(ue.name("b"))
    answers = race(
        both.left,
        track(both.left, *reversed(both.prepared_left.switch(enable_file(ue, "a"))), passes=20),
        track(both.right, *both.prepared_right.switch(enable_file(ue, "b")), passes=20),
    )
    assert answers == [[{"1": 20}, {"1": 20}], [{"1": 20}, {"1": 20}]]
    assert (page.shows(first.place), page.shows(second.place)) == (1, 0)


@case(spec="user_event_enabler_create; user_events_ioctl_unreg", profiles="6.4..")
@doc("Status: the bit that was registered for the event is updated as tools attach and detach")
@variants(("on", True, 32), ("off", False, 0))
def test_registrations_come_and_go(ue: UserEvents, listening: bool, left: int) -> None:
    """A word that is registered repeatedly during switching is right once all is quiet."""
    both = Racers(ue)
    data = both.left.open_data()
    kept = data.register(ue.name(), bit=5).word
    word = both.left.word()
    register = both.prepared_left.register(data, ue.name(), word=word, bit=5)
    unregister = both.prepared_left.unregister(data, word, bit=5)
    on, off = both.prepared_right.switch(enable_file(ue))
    switching = (off, on) if listening else (on, off)
    answers = race(
        both.left,
        track(both.left, register, unregister, passes=50),
        track(both.right, *switching, passes=20),
    )
    assert answers == [[{"0": 50}, {"0": 50}], [{"1": 20}, {"1": 20}]]
    assert (kept.value, word.value) == (left, 0)
    data.register(ue.name(), word=word, bit=5)
    assert word.value == left


@case(spec="user_event_enabler_create: written and listed under event_mutex", profiles="6.4..")
@variants({"threads": THREAD, "processes": 0})
def test_registered_while_enabled(ue: UserEvents, flags: int) -> None:
    """Enabling an event while words are being registered for it sets every word."""
    both = Racers(ue, flags)
    data = both.left.open_data()
    data.register(ue.name())
    words = [both.left.word() for _ in range(16)]
    register = [both.prepared_left.register(data, ue.name(), word=word, bit=1) for word in words]
    on, _ = both.prepared_right.switch(enable_file(ue))
    answers = race(both.left, track(both.left, *register), track(both.right, on))
    assert answers == [[{"0": 1}] * 16, [{"1": 1}]]
    assert {word.value for word in words} == {2}


@case(spec="user_event_enabler_update: waits for mmap_lock", profiles="6.4..")
def test_enabled_while_mappings_change(ue: UserEvents) -> None:
    """Enabling events of a process that changes its mappings at that moment sets every bit."""
    both = Racers(ue, 0)
    word, data = both.left.word(), both.left.open_data()
    stems = [f"e{bit}" for bit in range(8)]
    for bit, stem in enumerate(stems):
        data.register(ue.name(stem), bit=bit, word=word)
    enable = [both.prepared_right.switch(enable_file(ue, stem))[0] for stem in stems]
    address, actor = both.left.map(16), both.left.actor
    protect = [Mprotect(actor, address + PAGE, PAGE, protection) for protection in (0, 3)]
    answers = race(both.left, track(both.left, *protect, passes=2_000), track(both.right, *enable))
    assert answers == [[{"0": 2_000}] * 2, [{"1": 1}] * 8]
    assert word.value == 0xFF


@case(spec="user_events_ioctl_unreg: user_event_mm_clear_bit", profiles="6.4..")
@doc("Unregistering: disables the bit at the address")
@variants(1, 2, 3, 4)
def test_unregistered_while_enabled(ue: UserEvents, again: int) -> None:
    """A bit is clear after it is unregistered, even if the event is enabled at that moment."""
    both = Racers(ue)
    data = both.left.open_data()
    words = [data.register(ue.name(), bit=bit).word for bit in range(again)]
    on, _ = both.prepared_right.switch(enable_file(ue))
    gone = [both.prepared_left.unregister(data, word, bit=bit) for bit, word in enumerate(words)]
    answers = both.race(gone, [on])
    assert answers[1] == [{"1": 1}]
    assert set(map(str, answers[0])) == {"{'0': 1}"}
    assert {word.value for word in words} == {0}


ONE = struct.pack("<I", 1)
TWO = struct.pack("<I", 2)


@case(spec="user_event_ftrace", isolation="global")
@doc("Writing Data: a write to the descriptor of a registration writes an entry for its event")
@variants({"threads": THREAD, "processes": 0})
def test_no_record_is_lost(ue: UserEvents, flags: int) -> None:
    """Of concurrent writes on two CPUs each is recorded completely."""
    both = Racers(ue, flags)
    mine, its = both.open_data()
    mine.register(f"{ue.name()} u32 v")
    its.register(f"{ue.name()} u32 v")
    ue.tracefs.enable(ue.name())
    answers = race(
        both.left,
        track(both.left, both.prepared_left.write(mine, 0, ONE), passes=400),
        track(both.right, both.prepared_right.write(its, 0, TWO), passes=300),
    )
    assert answers == [[{"8": 400}], [{"8": 300}]]
    assert [_entries(ue, cpu) for cpu in (0, 1)] == ["entries: 400", "entries: 300"]
    assert ue.tracefs.distinct_records() == [
        ue.line("v=0x1 (1)", dump="01 00 00 00"),
        ue.line("v=0x2 (2)", dump="02 00 00 00"),
    ]


def _entries(ue: UserEvents, cpu: int) -> str:
    path = ue.tracefs.path(f"per_cpu/cpu{cpu}/stats")
    return ue.tracefs.read(path, View.COUNTS).text.splitlines()[0]


@case(spec="user_events_write_core", level="behaviour")
@doc("Writing Data: silent about the error of a write while nothing is attached")
@variants({"threads": THREAD, "processes": 0})
def test_written_while_switched(ue: UserEvents, flags: int) -> None:
    """A write during switching is recorded completely or not at all."""
    both = Racers(ue, flags)
    data = both.left.open_data()
    data.register(f"{ue.name()} u32 v")
    ue.tracefs.enable(ue.name())
    on, off = both.prepared_right.switch(enable_file(ue))
    writing = both.prepared_left.write(data, 0, ONE)
    (written,), switched = race(
        both.left, track(both.left, writing, passes=300), track(both.right, off, on, passes=10)
    )
    assert switched == [{"1": 10}, {"1": 10}]
    refused = ue.dated("ebadf_when_disabled", since={"EBADF"}, before=set())
    assert set(written) <= {"8"} | refused
    assert data.write_event(0, ONE).value == 8
    assert ue.tracefs.distinct_records() == [ue.line("v=0x1 (1)", dump="01 00 00 00")]


@case(spec="user_events_ref_add: the old array is freed after a grace period")
@doc("Registering: write_index represents the event when writing data")
def test_written_while_registered(ue: UserEvents) -> None:
    """An index stays valid while the descriptor registers more events."""
    both = Racers(ue)
    data = both.left.open_data()
    data.register(f"{ue.name()} u32 v")
    ue.tracefs.enable(ue.name())
    more = [both.prepared_right.register(data, ue.name(f"more{n}")) for n in range(8)]
    answers = race(
        both.left,
        track(both.left, both.prepared_left.write(data, 0, ONE), passes=500),
        track(both.right, *more),
    )
    assert answers == [[{"8": 500}], [{"0": 1}] * 8]
    assert ue.tracefs.distinct_records() == [ue.line("v=0x1 (1)", dump="01 00 00 00")]


@case(spec="user_events_write_core; user_events_release", level="behaviour")
@doc("Writing Data: silent about a descriptor that is closed")
def test_written_while_closed(ue: UserEvents) -> None:
    """Writing through a descriptor that another thread closes fails with EBADF."""
    both = Racers(ue)
    data = both.left.open_data()
    data.register(f"{ue.name()} u32 v")
    ue.tracefs.enable(ue.name())
    (written,), closed = race(
        both.left,
        track(both.left, both.prepared_left.write(data, 0, ONE), passes=300),
        track(both.right, both.prepared_right.close(data)),
    )
    assert closed == [{"0": 1}]
    assert set(written) <= {"8", "EBADF"}
    assert data.write_event(0, ONE).errno == "EBADF"
