"""write(): the index at the start of the data selects the event."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.writing import RECORD

DOC = "Registering: write_index is unique to this instance of the file descriptor"
case = surface("write", spec="user_events_write_core", doc=DOC, level="behaviour", tier="full")


@case(tier="quick")
@doc("Writing Data: the data begin with the write index; silent about data without one")
@variants({"none": b"", "one": b"\0", "two": b"\0\0", "three": b"\0\0\0"})
def test_too_short_for_index(ue: UserEvents, data: bytes) -> None:
    """A write of less than the four bytes of an index is EFAULT, enabled or not."""
    file = ue.event().data
    assert file.write(data).errno == "EFAULT"
    ue.tracefs.enable(ue.name())
    assert file.write(data).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(spec="user_events_write_core: idx < 0", needs="negative_index_refused", tier="quick")
@doc("Writing Data: the data begin with the write index;")
@doc("silent about an index that was never returned")
@variants(("minus_1", -1), ("minus_4096", -4096), ("int_min", -2147483648))
def test_negative_index(ue: UserEvents, index: int) -> None:
    """A negative index is EINVAL, even on a file without registrations."""
    data = ue.open_data()
    assert data.write_event(index, b"\1\0\0\0").errno == "EINVAL"
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    assert data.write_event(index, b"\1\0\0\0").errno == "EINVAL"
    assert ue.tracefs.records() == []


@case(spec="user_events_write_core: idx >= refs->count")
@doc("Writing Data: the data begin with the write index;")
@doc("silent about an index that was never returned")
@variants({"next": 2, "65536": 65536, "int_max": 2147483647})
def test_unknown_index(ue: UserEvents, index: int) -> None:
    """An index past the last registered event of the file is ENOENT."""
    data = ue.register(a="", b="")
    ue.tracefs.enable(ue.name("a"))
    assert data.write_event(index).errno == "ENOENT"
    assert data.write_event(0).value == ue.dated("empty_payload", since=4, before=-1)


@case(spec="user_events_write_core: no refs", tier="quick")
@doc("Writing Data: the descriptor that registered an event writes it; silent about others")
def test_nothing_registered(ue: UserEvents) -> None:
    """On a file without registrations index 0 is ENOENT."""
    assert ue.open_data().write_event(0).errno == "ENOENT"


@case(level="contract")
@doc("Writing Data: the data begin with the write index; the rest is the payload")
def test_index_picks_the_event(ue: UserEvents) -> None:
    """Each index of a file writes the event that was registered with it."""
    data = ue.register(a="u8 x", b="u16 y", c="u32 z")
    ue.enable("a", "b", "c")
    assert (data.write_event(2, b"\1\0\0\0").value, data.write_event(0, b"\2").value) == (8, 5)
    assert data.write_event(1, b"\3\0").value == 6
    assert ue.tracefs.records() == [
        ue.line("z=0x1 (1)", name="c", dump="01 00 00 00"),
        ue.line("x=(2)", name="a", dump="02"),
        ue.line("y=0x3 (3)", name="b", dump="03 00"),
    ]


@case(spec="user_events_write_core: info->refs belongs to the open file", level="contract")
def test_index_of_another_file(ue: UserEvents) -> None:
    """Two open files number their events separately: one index is two events."""
    first, second, third = ue.open_data(), ue.open_data(), ue.open_data()
    first.register(ue.name("a") + " u8 x")
    first.register(ue.name("b") + " u8 y")
    second.register(ue.name("b") + " u8 y")
    ue.enable("a", "b")
    assert (first.write_event(0, b"\1").value, second.write_event(0, b"\2").value) == (5, 5)
    assert second.write_event(1, b"\3").errno == "ENOENT"
    assert third.write_event(0, b"\4").errno == "ENOENT"
    assert ue.tracefs.records() == [
        ue.line("x=(1)", name="a", dump="01"),
        ue.line("y=(2)", name="b", dump="02"),
    ]


@case(spec="user_events_write_core: dup(2) shares the open file")
@doc("Registering: write_index is unique to the descriptor; silent about dup()")
def test_index_of_a_duplicate(ue: UserEvents) -> None:
    """A duplicated descriptor shares the indices, and keeps them when the first is closed."""
    data = ue.open_data()
    copy = data.dup()
    data.register(ue.name("a") + " u8 x")
    assert copy.register(ue.name("b") + " u8 y").index == 1
    ue.enable("a", "b")
    assert data.write_event(1, b"\1").value == 5
    data.close()
    assert copy.write_event(0, b"\2").value == 5
    assert ue.tracefs.records() == [
        ue.line("y=(1)", name="b", dump="01"),
        ue.line("x=(2)", name="a", dump="02"),
    ]


@case(spec="user_events_write_core: fork(2) shares the open file")
@doc("Registering: write_index is unique to the descriptor; silent about fork()")
def test_index_in_a_child(ue: UserEvents) -> None:
    """Parent and child share the indices of an inherited descriptor in both directions."""
    data = ue.event("u8 x", name="a").data
    child = ue.fork(ue.process)
    assert data.of(child).register(ue.name("b") + " u8 y").index == 1
    child.exit()
    ue.enable("a", "b")
    other = ue.fork(ue.process)
    assert (data.of(other).write_event(0, b"\1").value, data.write_event(1, b"\2").value) == (5, 5)
    assert ue.tracefs.records() == [
        ue.line("x=(1)", name="a", dump="01"),
        ue.line("y=(2)", name="b", dump="02"),
    ]


@case(spec="user_events_ioctl_unreg leaves the refs of the file", profiles="6.4..")
@doc("Unregistering: ends updates; silent about the write index")
def test_after_unregister(ue: UserEvents) -> None:
    """The write index stays valid after the word is unregistered."""
    event = ue.event("u32 a")
    assert event.unregister().value == 0
    event.enable()
    assert event.data.write(RECORD).value == 8
    assert ue.tracefs.records() == [f"{ue.name()}: a=0x41 (65)"]
