"""A full ring buffer: writes succeed whichever records are lost."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance
from conformance.client.perf import open_perf
from conformance.client.tracefs import Instance
from conformance.ops import View

SPEC = "ring_buffer.c:rb_move_tail"
case = surface("trace_full", spec=SPEC, level="detail", tier="full", isolation="global")

# Two records with such a payload fill a page, and a buffer has at least two pages.
SIZE = 2000


def small(ue: UserEvents, kilobytes: str = "4", *, overwrite: bool = True) -> Instance:
    """An instance with a buffer of two pages on the CPU of the process."""
    ue.process.pin(0)
    instance = create_instance(ue)
    assert instance.write(instance.path("buffer_size_kb"), kilobytes).value == len(kilobytes)
    if not overwrite:
        assert instance.write(instance.path("options/overwrite"), "0").value == 1
    return instance


def payload(number: int) -> bytes:
    """A payload that starts with a number."""
    return bytes([number]).ljust(SIZE, b"\0")


def line(ue: UserEvents, number: int) -> str:
    """The trace line of such a payload, whose dump is left out for its length."""
    shown = f"'{chr(number)}'({number})" if number >= 32 else f"({number})"
    return ue.line(f"a={shown}")


def counted(instance: Instance) -> str:
    """per_cpu/cpu0/stats without bytes and timestamps."""
    return instance.read(instance.path("per_cpu/cpu0/stats"), View.COUNTS).text


@case(doc="ftrace.rst@v6.12: overwrite: the oldest events are lost, or the newest")
@variants(
    ("one_more", 5, (3, 4, 5), 2), ("full", 4, (1, 2, 3, 4), 0), ("many_more", 11, (9, 10, 11), 8)
)
def test_overwritten(ue: UserEvents, written: int, kept: tuple[int, ...], overrun: int) -> None:
    """In a full buffer the oldest page is overwritten, and all writes return their length."""
    instance = small(ue)
    event = ue.event("u8 a")
    instance.enable(ue.name())
    for number in range(1, written + 1):
        assert event.write(payload(number)).value == 2004
    assert instance.records() == [line(ue, number) for number in kept]
    assert counted(instance) == (
        f"entries: {len(kept)}\noverrun: {overrun}\ncommit overrun: 0\n"
        "dropped events: 0\nread events: 0\n"
    )


@case(doc="ftrace.rst@v6.12: overwrite: the oldest events are lost, or the newest")
def test_dropped(ue: UserEvents) -> None:
    """Without overwriting the newest records are lost, and their writes return the same."""
    instance = small(ue, overwrite=False)
    event = ue.event("u8 a")
    instance.enable(ue.name())
    for number in range(1, 8):
        assert event.write(payload(number)).value == 2004
    assert instance.records() == [line(ue, number) for number in (1, 2, 3, 4)]
    assert counted(instance) == (
        "entries: 4\noverrun: 0\ncommit overrun: 0\ndropped events: 3\nread events: 0\n"
    )
    instance.clear_trace()
    assert event.write(payload(8)).value == 2004
    assert instance.records() == [line(ue, 8)]


@case(spec="rb_move_tail; trace_events_user.c:user_event_ftrace", needs="dynamic_fields_validated")
@doc("Writing Data: silent about full buffers")
def test_not_validated(ue: UserEvents) -> None:
    """If the buffer has no room the payload is not validated: a malformed one is accepted."""
    instance = small(ue, overwrite=False)
    event = ue.event("__rel_loc char[] a")
    instance.enable(ue.name())
    invalid = b"\0\0\xff\xff".ljust(SIZE, b"\0")
    assert event.write(invalid).errno == "EFAULT"
    for _ in range(4):
        assert event.write(bytes(SIZE)).value == 2004
    assert event.write(invalid).value == 2004
    assert counted(instance).endswith("dropped events: 1\nread events: 0\n")


@case(doc="Writing Data: silent about several tracers", needs="perf_sink", facilities="perf")
@spec("rb_move_tail; trace_events_user.c:user_events_write_core")
def test_others_have_room(ue: UserEvents) -> None:
    """A full buffer does not affect another instance, or perf: they have every record."""
    instance = small(ue, overwrite=False)
    event = ue.event("u8 a")
    instance.enable(ue.name())
    ue.tracefs.enable(ue.name())
    perf = open_perf(ue.process, ue.name())
    for number in range(1, 7):
        assert event.write(payload(number)).value == 2004
    assert len(instance.records()) == 4
    assert ue.tracefs.records() == [line(ue, number) for number in range(1, 7)]
    assert perf.count == 6


@case(spec="trace.c:tracing_entries_write; ring_buffer.c:ring_buffer_resize")
@doc("ftrace.rst@v6.12: buffer_size_kb: the size of each processor's buffer")
@variants(("least", "1", (5, 6, 7, 8)), ("three_pages", "9", (3, 4, 5, 6, 7, 8)))
def test_size(ue: UserEvents, kilobytes: str, kept: tuple[int, ...]) -> None:
    """A buffer has as many pages as requested, and never less than two."""
    instance = small(ue, kilobytes)
    assert instance.write(instance.path("buffer_size_kb"), "0").errno == "EINVAL"
    event = ue.event("u8 a")
    instance.enable(ue.name())
    for number in range(1, 9):
        assert event.write(payload(number)).value == 2004
    assert instance.records() == [line(ue, number) for number in kept]
