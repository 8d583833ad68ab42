"""Memory of the kernel: every allocation of user_events is freed, seen by the kmem events."""

import struct

from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.client.allocations import Allocations
from conformance.client.memory import discard
from conformance.client.perf import open_perf
from conformance.client.tracefs import MAXIMUM

DOC = "Deleting: an event is deleted when no references are left; silent about memory"
case = surface(
    "lifetime", doc=DOC, level="behaviour", profiles="6.4..", needs="auto_delete deferred_release"
)


@case(spec="user_event_parse, destroy_user_event; trace_events_user.c:user_events_release")
@variants(
    ("strings", "__data_loc char[] a; __rel_loc char[] b", struct.pack("<5H", 16, 1, 1, 1, 0)),
    ("scalars", "u32 a; u8 b", struct.pack("<IB", 1, 2)),
    ("packed", "u32 a;u8 b;struct pair c 8", bytes(13)),
    ("none", "", b""),
)
def test_allocations_of_an_event(ue: UserEvents, fields: str, payload: bytes) -> None:
    """What an event, its registrations and its records allocate is freed with it."""
    allocations, process = Allocations(ue), ue.new_process()
    data, definition = process.open_data(), f"{ue.name()} {fields}".rstrip()
    index = data.register(definition, word=process.word(), bit=3).index
    data.register(definition, word=process.word(8), bit=40)
    ue.tracefs.enable(ue.name())
    assert data.write_event(index, payload).value == 4 + len(payload)
    data.write_event(index)
    ue.tracefs.disable(ue.name())
    process.exit()
    assert allocations.unfreed() == ""


@case(spec="user_event_parse, user_event_create: errors")
@variants(
    ("type", "__data_loc char[] a; nosuch b", "EINVAL"),
    ("name", "__rel_loc u8[] a; u32", "EINVAL"),
    ("size", "u32 a;char[5000] b", "EINVAL"),
    ("struct", "struct pair a", "EINVAL"),
)
def test_allocations_of_a_refused_event(ue: UserEvents, fields: str, errno: str) -> None:
    """What the kernel allocates for a definition that it refuses is freed."""
    allocations, process = Allocations(ue), ue.new_process()
    assert process.open_data().register(f"{ue.name()} {fields}").errno == errno
    assert ue.tracefs.command(f"u:{ue.name()} {fields}").errno == errno
    process.exit()
    assert allocations.unfreed() == ""


@case(bug="enomem-for-bad-address", tier="full", spec="user_event_enabler_create: !write_result")
def test_allocations_of_a_refused_word(ue: UserEvents) -> None:
    """What the kernel allocates for a word that it cannot write is freed."""
    allocations, process = Allocations(ue), ue.new_process()
    missing = process.word_at(process.reserve(1), value=None)
    errno = ue.bug("enomem-for-bad-address", fixed="EFAULT", present="ENOMEM")
    assert process.open_data().register(ue.name(), word=missing).errno == errno
    process.exit()
    assert allocations.unfreed() == ""


@case(tier="full", isolation="global")
@spec("user_event_parse: current_user_events >= max_user_events")
def test_allocations_beyond_the_limit(ue: UserEvents) -> None:
    """What the kernel allocates for an event beyond `user_events_max` is freed."""
    allocations, process = Allocations(ue), ue.new_process()
    data, definition = process.open_data(), f"{ue.name()} u32 a; __data_loc char[] b"
    ue.tracefs.write(MAXIMUM, "0\n")
    for flags in (0, 2) if ue.profile.has("multi_format") else (0,):
        assert data.register(definition, flags=flags, word=process.word()).errno == "EMFILE"
    process.exit()
    assert allocations.unfreed() == ""


@case(spec="user_field_match; trace_events_user.c:user_event_parse: found", tier="full")
def test_allocations_of_a_match(ue: UserEvents) -> None:
    """What the comparison with an existing event allocates is freed, whether it matches or not."""
    allocations, process = Allocations(ue), ue.new_process()
    data = process.open_data()
    assert data.register(f"{ue.name()} u32 a; __data_loc char[] b").index == 0
    assert data.register(f"{ue.name()} u32 a;__data_loc char[] b").index == 0
    for other in ("u32 a", "u32 a; __rel_loc char[] b", "u32 a; __data_loc char[] b; u8 c"):
        assert data.register(f"{ue.name()} {other}").errno == "EADDRINUSE"
    process.exit()
    assert allocations.unfreed() == ""


@case(needs="auto_delete deferred_release lasting_events")
@spec("user_event_create, user_event_free; trace_events_user.c:user_events_ioctl_del")
def test_allocations_of_commands(ue: UserEvents) -> None:
    """What dynamic_events and DIAG_IOCSDEL allocate is freed, also when they are refused."""
    allocations, process = Allocations(ue), ue.new_process()
    data, definition = process.open_data(), f"{ue.name()} u32 a; __data_loc char[] b"
    for _ in range(2):
        assert ue.tracefs.command(f"u:{definition}").ok
        assert ue.tracefs.command(f"u:{definition}").ok
        assert ue.tracefs.command(f"-:{ue.name()} u32 a").errno == "ENOENT"
        assert ue.tracefs.command(f"-:{definition}").ok
    assert ue.tracefs.command(f"u:{definition}").ok
    assert data.delete(ue.name("nosuch")).errno == "ENOENT"
    assert data.delete(ue.name()).ok
    process.exit()
    assert allocations.unfreed() == ""


@case(needs="auto_delete deferred_release multi_format", tier="full")
@spec("user_event_set_tp_name, destroy_user_event")
def test_allocations_of_multi_format_events(ue: UserEvents) -> None:
    """The names of events with several formats are freed, also when a definition is refused."""
    allocations, process = Allocations(ue), ue.new_process()
    for fields in ("u32 a", "u64 a"):
        data = process.open_data()
        assert data.register(f"{ue.name()} {fields}", flags=2, word=process.word()).index == 0
    data = process.open_data()
    assert data.register(f"{ue.name()} nosuch a", flags=2, word=process.word()).errno == "EINVAL"
    process.exit()
    assert allocations.unfreed() == ""


@case(spec="user_event_mm_dup, user_event_mm_remove, user_event_mm_destroy")
@variants("exits", "unregisters", "outlives")
def test_allocations_of_a_fork(ue: UserEvents, then: str) -> None:
    """What fork(2) allocates for the words of a child is freed."""
    allocations, process = Allocations(ue), ue.new_process()
    data, word = process.open_data(), process.word()
    data.register(ue.name(), word=word, bit=1)
    data.register(ue.name(), word=word, bit=2)
    child = ue.fork(process)
    if then == "unregisters":
        data.of(child).unregister(child.word_at(word.address), bit=1)
    first, last = (process, child) if then == "outlives" else (child, process)
    first.exit()
    last.exit()
    assert allocations.unfreed() == ""


@case(spec="user_event_enabler_queue_fault, user_event_enabler_fault_fixup", tier="full")
def test_allocations_of_a_fault(ue: UserEvents) -> None:
    """What faulting in an enable word allocates is freed, whether the fault succeeds or not."""
    allocations, process = Allocations(ue), ue.new_process()
    data = process.open_data()
    there, gone = process.word_at(process.map()), process.word_at(process.map())
    data.register(ue.name(), word=there)
    data.register(ue.name(), word=gone)
    discard(process, there.address)
    process.unmap(gone.address)
    ue.tracefs.enable(ue.name())
    assert there.wait() == 1
    ue.tracefs.disable(ue.name())
    process.exit()
    assert allocations.unfreed() == ""


@case(facilities="perf", tier="full", spec="user_event_reg, user_event_perf")
def test_allocations_of_perf(ue: UserEvents) -> None:
    """What recording by perf allocates is freed."""
    allocations, process = Allocations(ue), ue.new_process()
    event = ue.event("u32 a", of=process)
    perf = open_perf(process, ue.name())
    assert event.write(bytes(4)).value == 8
    assert perf.count == 1
    process.exit()
    assert allocations.unfreed() == ""
