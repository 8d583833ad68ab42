"""trace_pipe_raw: records byte by byte, as read by tools that decode them by `format`.

conformance.ops.decoding.trace_page renders a page as text; `length` covers common fields, payload
and padding.
"""

from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.client.data_file import DataFile
from conformance.client.pipes import Pipe, RawPipe

DOC = "ftrace.rst@v6.12: trace_pipe_raw: the pages of the ring buffer"
case = surface("trace_page", doc=DOC, level="detail", tier="full", isolation="global")


def listening(ue: UserEvents, fields: str = " u32 a") -> DataFile:
    """The data file of a process pinned to CPU 0, and an enabled event of index 0."""
    ue.process.pin(0)
    data = ue.register(ue.name() + fields)
    ue.tracefs.enable(ue.name())
    return data


@case(spec="user_event_ftrace", level="behaviour", tier="quick")
def test_record(ue: UserEvents) -> None:
    """A record has the event's type, no flags, the writer's PID, and the payload from byte 8 on."""
    data = listening(ue)
    raw = RawPipe(ue.process, ue.tracefs, ue.name())
    assert data.write_event(0, b"\x41\x42\x43\x44").value == 8
    seen = raw.read()
    assert seen.value == 4096
    assert seen.text == (
        "commit 16\ntype_len 3 length 12 type own flags 0 pid own: 41 42 43 44\nrest zero\n"
    )


@case(spec="ring_buffer.c:rb_calculate_event_length, rb_update_event")
@variants(
    (1, "commit 16\ntype_len 3 length 12 "),
    (5, "commit 20\ntype_len 4 length 16 "),
    (8, "commit 20\ntype_len 4 length 16 "),
    (104, "commit 116\ntype_len 28 length 112 "),
    (105, "commit 124\ntype_len 0 length 116 "),
    (108, "commit 124\ntype_len 0 length 116 "),
    (1000, "commit 1016\ntype_len 0 length 1008 "),
    (1501, "commit 1520\ntype_len 0 length 1512 "),
)
def test_length(ue: UserEvents, size: int, head: str) -> None:
    """All written bytes are there, including those after the last field, padded to words."""
    data = listening(ue, " u8 a")
    raw = RawPipe(ue.process, ue.tracefs, ue.name())
    payload = bytes(number % 251 for number in range(size))
    assert data.write_event(0, payload).value == size + 4
    assert raw.read().text == f"{head}type own flags 0 pid own: {payload.hex(' ')}\nrest zero\n"


@case(needs="empty_payload")
@spec("user_event_ftrace; ring_buffer.c:rb_calculate_event_length, rb_update_event")
def test_without_payload(ue: UserEvents) -> None:
    """A record of an event without fields has the common fields and one word of padding."""
    data = listening(ue, "")
    raw = RawPipe(ue.process, ue.tracefs, ue.name())
    assert data.write_event(0).value == 4
    shown = raw.read().text
    assert shown == "commit 16\ntype_len 3 length 12 type own flags 0 pid own: \nrest zero\n"


@case(spec="user_event_ftrace; ring_buffer.c:ring_buffer_read_page", level="behaviour")
def test_several(ue: UserEvents) -> None:
    """Records of two events and two processes are back to back, each with its own type and PID."""
    data = listening(ue)
    data.register(ue.name("b") + " u8 x")
    ue.tracefs.enable(ue.name("b"))
    process = ue.new_process()
    process.pin(0)
    other = ue.event("u32 a", of=process).data
    raw = RawPipe(ue.process, ue.tracefs, ue.name())
    data.write_event(0, b"\1\0\0\0")
    other.write_event(0, b"\2\0\0\0")
    data.write_event(1, b"\3")
    assert raw.read().text == (
        "commit 48\n"
        "type_len 3 length 12 type own flags 0 pid own: 01 00 00 00\n"
        "type_len 3 length 12 type own flags 0 pid other: 02 00 00 00\n"
        "type_len 3 length 12 type other flags 0 pid own: 03\n"
        "rest zero\n"
    )


@case(spec="ring_buffer.c:ring_buffer_read_page")
def test_consumed(ue: UserEvents) -> None:
    """A page is read once: the next has only later records."""
    data = listening(ue)
    raw = RawPipe(ue.process, ue.tracefs, ue.name())
    assert raw.read().errno == "EAGAIN"
    data.write_event(0, b"\1\1\1\1")
    data.write_event(0, b"\2\2\2\2")
    assert raw.read().text.startswith("commit 32\n")
    assert raw.read().errno == "EAGAIN"
    assert ue.tracefs.records() == []
    data.write_event(0, b"\3\3\3\3")
    assert raw.read().text == (
        "commit 16\ntype_len 3 length 12 type own flags 0 pid own: 03 03 03 03\nrest zero\n"
    )


@case(spec="ring_buffer.c:ring_buffer_read_page; trace.c:tracing_read_pipe")
def test_after_trace_pipe(ue: UserEvents) -> None:
    """A record that was read as text is not on the page: each record has one reader."""
    data = listening(ue)
    text, raw = Pipe(ue.process, ue.tracefs), RawPipe(ue.process, ue.tracefs, ue.name())
    data.write_event(0, b"\1\0\0\0")
    assert text.records() == [ue.line("a=0x1 (1)", dump="01 00 00 00")]
    data.write_event(0, b"\2\0\0\0")
    assert raw.read().text == (
        "commit 16\ntype_len 3 length 12 type own flags 0 pid own: 02 00 00 00\nrest zero\n"
    )


@case(level="behaviour", needs="dynamic_fields_validated")
@spec("user_event_ftrace: discard; ring_buffer.c:ring_buffer_discard_commit")
def test_refused(ue: UserEvents) -> None:
    """A rejected payload leaves no byte in the buffer."""
    data = listening(ue, " __rel_loc char[] a")
    raw = RawPipe(ue.process, ue.tracefs, ue.name())
    assert data.write_event(0, b"\0\0\x08\0refused!").errno == "EFAULT"
    assert raw.read().errno == "EAGAIN"
    assert data.write_event(0, b"\0\0\x04\0yes\0").value == 12
    assert data.write_event(0, b"\0\0\x08\0refused!").errno == "EFAULT"
    assert raw.read().text == (
        "commit 20\n"
        "type_len 4 length 16 type own flags 0 pid own: 00 00 04 00 79 65 73 00\n"
        "rest zero\n"
    )
