"""tracing_cpumask: CPUs whose writes are not recorded."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance
from conformance.client.perf import open_perf
from conformance.client.tracefs import TRACING_ON, Tracefs

DOC = (
    "ftrace.rst@v6.12: tracing_cpumask: only the processors in it are traced; silent about "
    "the result of a write"
)
case = surface("trace", doc=DOC, level="detail", tier="full", isolation="global")


@case(own_kernel="it compares the mask of all processors")
@spec("trace.c:tracing_cpumask_write, tracing_set_cpumask")
@doc("tracing_cpumask: a mask of the traced CPUs in hexadecimal digits")
@variants("top", "instance")
def test_processors_refused(ue: UserEvents, where: str) -> None:
    """An invalid mask is rejected and changes nothing; one with too many CPUs is EOVERFLOW."""
    instance = create_instance(ue)
    files = ue.tracefs if where == "top" else instance
    path = files.path("tracing_cpumask")
    for wrong in ("x\n", "0x1\n", "-1\n"):
        assert files.write(path, wrong).errno == "EINVAL"
    assert files.set_processors("1" + ",00000000" * 1024).errno == "EOVERFLOW"
    assert files.processors == "1\n"
    ue.process.setuid()
    assert ue.instance().of(ue.process.actor).set_processors("x").errno == "EACCES"


@case(spec="ring_buffer.c:ring_buffer_lock_reserve: record_disabled of the processor")
# An empty line is an empty mask.
@variants(("zero", "0", 2), ("empty", "", 1))
def test_no_processor(ue: UserEvents, mask: str, length: int) -> None:
    """A write on a CPU outside the mask returns its length and is not recorded."""
    event = ue.event("u8 a", enabled=True)
    assert ue.tracefs.set_processors(mask).value == length
    assert ue.tracefs.processors == "0\n"
    assert event.write(b"\1").value == 5
    assert ue.tracefs.read(TRACING_ON).text == "1\n"
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert ue.tracefs.set_processors("1").value == 2
    assert event.write(b"\2").value == 5
    assert ue.tracefs.records() == [ue.line("a=(2)", dump="02")]


@case(own_kernel="it compares the mask of all processors")
@spec("ring_buffer.c:ring_buffer_lock_reserve: record_disabled of the processor")
@variants("instance", "top")
def test_no_processor_of_one(ue: UserEvents, where: str) -> None:
    """Each instance has its own mask: one that contains the CPU records."""
    instance, event = create_instance(ue), ue.event("u8 a")
    listeners: dict[str, Tracefs] = {"top": ue.tracefs, "instance": instance}
    for each in listeners.values():
        each.enable(ue.name())
    without = listeners.pop(where)
    (other,) = listeners.values()
    without.set_processors("0")
    assert other.processors == "1\n"
    assert event.write(b"\1").value == 5
    assert without.records() == []
    assert other.records() == [ue.line("a=(1)", dump="01")]


@case(needs="dynamic_fields_validated", doc="@v6.12: Writing Data: silent about dynamic fields")
@spec("ring_buffer.c:ring_buffer_lock_reserve: record_disabled of the processor;")
@spec("trace_events_user.c:user_event_ftrace")
@variants(("nothing", "", ""), ("filter", "filter", "EFAULT"), ("trigger", "trigger", "EFAULT"))
def test_no_processor_looks_at_nothing(ue: UserEvents, hook: str, errno: str) -> None:
    """A malformed payload is not detected there, unless a filter or trigger reads the record."""
    event = ue.event("__rel_loc char[] s; u8 a", enabled=True)
    if hook == "filter":
        event.directory.set_filter("a == 1")
    elif hook:
        event.directory.trigger("traceon if a == 1")
    ue.tracefs.set_processors("0")
    assert event.write(b"\1\0\2\0\1xx").errno == errno
    assert event.write(b"\1\0\2\0\1x\0").value == 11
    ue.tracefs.set_processors("1")
    assert ue.tracefs.records() == []


@case(needs="perf_sink", facilities="hist perf")
@spec("ring_buffer.c:ring_buffer_lock_reserve: record_disabled of the processor;")
@spec("trace.c:trace_event_buffer_lock_reserve: temp_buffer")
def test_no_processor_beside_others(ue: UserEvents) -> None:
    """perf and histograms count writes on a CPU outside the mask."""
    event = ue.event("u8 a", enabled=True)
    event.directory.trigger("hist:keys=a")
    listener = open_perf(ue.process, ue.name())
    ue.tracefs.set_processors("0")
    assert event.write(b"\1").value == 5
    assert listener.count == 1
    assert "{ a:          1 } hitcount:          1\n" in event.directory.hist
    ue.tracefs.set_processors("1")
    assert ue.tracefs.records() == []
