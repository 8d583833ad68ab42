"""BPF context of a write in the first version: a length and an address.

A program is attached to a perf event on the user event.  It stores its context, and the memory that
the context points to, for the case to compare.
"""

from conformance.abi.bpf import ProgramType
from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.bpf_recorder import Recorder
from conformance.cases.support.rfc_v1 import PATCH, bound_data, page_of
from conformance.client.bpf import Bpf
from conformance.client.data_file import DataFile
from conformance.client.perf import PerfAttr, PerfEvent, open_perf
from conformance.client.rfc_v1 import register
from conformance.ops.bpf_assembler import exit_insn, ldx_mem
from conformance.ops.bpf_opcodes import R0, R1, Size

SPEC = "user_event_perf"
DOC = "trace_events_user.c@rfc-v1: struct user_bpf_context is an int and a pointer of user space"
case = surface("rfc", SPEC, DOC, level="behaviour", profiles="rfc-v1", facilities="bpf_tracing")

FOLLOWING = PerfAttr()
STOPPED = PerfAttr(disabled=True)
A_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 61 00 00 00"
# The context's pointer to write()'s data here: 0x2000_0001_0000.
AT_DATA = b"\0\0\1\0\0\x20\0\0"
# A context of 8 bytes of data there.
EIGHT = b"\x08\0\0\0\0\0\0\0" + AT_DATA


def recorded(
    ue: UserEvents, attr: PerfAttr = FOLLOWING, *, room: int = 8, answer: int = 1
) -> tuple[DataFile, PerfEvent, Recorder]:
    """An event with perf enabled, a descriptor of it, and the attached program."""
    data = bound_data(ue, ue.name())
    event = open_perf(ue.process, ue.name(), attr)
    recorder = Recorder(ue.process, room=room, answer=answer, typed=False)
    assert recorder.attach(event).value == 0
    return data, event, recorder


@case
@doc(f"{PATCH}: data get into eBPF;")
@doc("trace_events_user.c@rfc-v1: struct user_bpf_context is an int and a pointer of user space")
@variants(
    ("8", b"12345678", b"\x08\0\0\0"),
    ("1", b"1", b"\x01\0\0\0"),
    ("2", b"12", b"\x02\0\0\0"),
    ("5000", b"x" * 5000, b"\x88\x13\0\0"),
)
def test_program_context(ue: UserEvents, payload: bytes, length: bytes) -> None:
    """A program gets the length of the data, and its address in the writing process."""
    data, _, recorder = recorded(ue, room=len(payload))
    assert data.write(payload).value == len(payload)
    seen = recorder.take()
    assert (seen.runs, seen.raw) == (1, length + b"\0\0\0\0" + AT_DATA)
    assert seen.content[: len(payload)] == payload


@case(spec="fs/read_write.c:do_loop_readv_writev", level="detail")
@doc(f"{PATCH}: data get into eBPF")
def test_program_segments(ue: UserEvents) -> None:
    """A program runs for each segment of writev(2), with its length and address."""
    data, _, recorder = recorded(ue, room=5)
    assert data.writev([b"one", b"three"]).value == 8
    seen = recorder.take()
    assert (seen.runs, seen.raw) == (2, b"\5\0\0\0\0\0\0\0\3\0\1\0\0\x20\0\0")
    assert seen.content[:5] == b"three"


@case
def test_program_of_writer(ue: UserEvents) -> None:
    """A program runs for every writer, whatever process perf follows, and reads its memory."""
    _, event, recorder = recorded(ue)
    other = ue.new_process().open_data()
    register(other, ue.name())
    assert other.write(b"12345678").value == 8
    seen = recorder.take()
    assert (seen.runs, seen.raw, seen.content[:8]) == (1, EIGHT, b"12345678")
    assert event.count == 0


@case(spec="fs/read_write.c:vfs_write", level="detail")
@variants(
    ("2-gib", 1 << 31, 0x7FFF_F000, b"\0\xf0\xff\x7f"),
    ("1-gib", 1 << 30, 0x4000_0000, b"\0\0\0\x40"),
)
def test_program_longest(ue: UserEvents, count: int, value: int, length: bytes) -> None:
    """The length fits an int: no call writes more."""
    data, _, recorder = recorded(ue, STOPPED)
    assert data.write_at(0x2000_0001_0000, count).value == value
    seen = recorder.take()
    assert (seen.runs, seen.raw) == (1, length + b"\0\0\0\0" + AT_DATA)


@case(spec="trace_events.c:trace_event_get_offsets", level="detail")
@variants(
    ("pointer", "u64\ta\t8\t0", 8, ""),
    ("pointer-of-short", "u32\ta\t4\t0", 8, "EACCES"),
    ("pointer-of-offset", "u8\ta\t1\t7", 8, ""),
    ("behind-the-context", "u8\ta\t1\t55", 56, ""),
)
def test_program_loads(ue: UserEvents, field: str, offset: int, errno: str) -> None:
    """The fields of an event, not the size of the context, limit a program's loads."""
    bound_data(ue, f"{ue.name()};{field}")
    program = Bpf(ue.process).load(
        [ldx_mem(Size.DW, R0, R1, offset), exit_insn()], ProgramType.TRACEPOINT
    )
    assert program.errno == ""
    assert open_perf(ue.process, ue.name()).set_program(program.slot).errno == errno


@case(spec="kernel/trace/bpf_trace.c:tp_prog_is_valid_access", level="detail", isolation="none")
def test_program_loads_length(ue: UserEvents) -> None:
    """A program may not load the length: tracepoints reserve the first eight bytes."""
    instructions = [ldx_mem(Size.W, R0, R1, 0), exit_insn()]
    assert Bpf(ue.process).load(instructions, ProgramType.TRACEPOINT).errno == "EACCES"


@case(level="detail", doc=f"{PATCH}: data get into eBPF; silent of what cannot be read")
@variants(("unmapped", 0x1000_0000, b"\0\0\0\x10\0\0\0\0"), ("null", 0, b"\0\0\0\0\0\0\0\0"))
def test_program_unread(ue: UserEvents, address: int, pointer: bytes) -> None:
    """A program runs before the data is read, and fails to read unreadable data."""
    data, event, recorder = recorded(ue, STOPPED)
    assert data.write_at(address, 8).value == 8
    seen = recorder.take()
    assert (seen.runs, seen.raw) == (1, b"\x08\0\0\0\0\0\0\0" + pointer)
    assert seen.content[:8] == b"\0\0\0\0\0\0\0\0"
    assert event.count == 0


@case(level="detail", isolation="fatal")
@doc(f"{PATCH}: data get into eBPF; silent of what cannot be read")
def test_program_before_copy(ue: UserEvents) -> None:
    """A program runs before perf copies: even if the copy fails, and after perf is stuck."""
    ue.process.pin(0)
    data, event, recorder = recorded(ue)
    assert data.write_at(0x1000_0000, 8).value == 8
    seen = recorder.take()
    assert (seen.runs, seen.raw) == (1, b"\x08\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0")
    assert data.write(b"12345678").value == 8
    seen = recorder.take()
    assert (seen.runs, seen.raw, seen.content[:8]) == (1, EIGHT, b"12345678")
    assert event.count == 0


@case(spec="user_event_perf; kernel/trace/bpf_trace.c:trace_call_bpf")
@doc(f"{PATCH}: data get into eBPF")
@variants(0, 1)
def test_program_answer(ue: UserEvents, answer: int) -> None:
    """Whatever a program returns, perf and ftrace get the data."""
    data, event, recorder = recorded(ue, room=1, answer=answer)
    ring = event.map()
    ue.tracefs.enable(ue.name())
    assert data.write(b"a").value == 1
    assert recorder.take().runs == 1
    assert event.count == 1
    assert ring.records() == [A_SAMPLE]
    assert ue.tracefs.records() == ["61"]


@case(doc=f"{PATCH}: data get into eBPF, as to perf")
def test_program_and_perf(ue: UserEvents) -> None:
    """A program runs as long as its perf event is open, and the byte stands for perf only."""
    page = page_of(ue.process)
    data, event, recorder = recorded(ue)
    place = register(ue.open_data(), ue.name()).value
    ue.tracefs.enable(ue.name())
    assert page.shows(place) == 3
    assert data.write(b"12345678").value == 8
    assert recorder.take().runs == 1
    event.close()
    assert page.shows(place) == 1
    assert data.write(b"12345678").value == 8
    assert recorder.take().runs == 0
