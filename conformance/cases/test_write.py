"""write() and writev() on user_events_data: what a write is, its index, its listeners.

Payloads, their limits and the order of checks are in test_write_payload, what the kernel
checks inside of a payload in test_write_validators.
"""

from __future__ import annotations

from conformance.cases.declare import case, variants
from conformance.sut.tracefs import TRACING_ON
from conformance.sut.user_events import UserEvents

DOC = "Documentation/trace/user_events.rst@v6.12: Writing Data"
CORE = "trace_events_user.c:user_events_write_core"
# write index 0 and a payload of 0x41.
INDEX = b"\0\0\0\0"
RECORD = INDEX + b"\x41\0\0\0"


# What a write is


@case(
    "write.returns_all_bytes",
    spec=CORE,
    doc=f"{DOC}: the data begin with the write index, the rest is the payload",
    profiles="5.18..",
)
@variants(
    "fields, payload, returned",
    {
        "u8": (" u8 a", b"\1", 5),
        "u64": (" u64 a", bytes(8), 12),
        "struct3000": (" struct s a 3000", bytes(3000), 3004),
    },
)
def test_returns_all_bytes(ue: UserEvents, fields: str, payload: bytes, returned: int) -> None:
    """A successful write returns the length of index and payload together."""
    data = ue.open_data()
    data.register(ue.name() + fields)
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, payload).value == returned
    assert len(ue.tracefs.records()) == 1


@case(
    "write.equals_writev",
    spec="trace_events_user.c:user_events_write_iter",
    doc=f"{DOC}: writev() may carry the index in one vector and the payload in others",
    profiles="5.18..",
)
def test_equals_writev(ue: UserEvents) -> None:
    """The same bytes through write and writev give the same result and the same record."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a; char[4] b")
    ue.tracefs.enable(ue.name())
    assert data.write(b"\0\0\0\0\7\0\0\0abc\0").value == 12
    assert data.writev([b"\0\0\0\0", b"\7\0\0\0abc\0"]).value == 12
    line = ue.line("a=0x7 (7)", "b=abc", dump="07 00 00 00 61 62 63 00")
    assert ue.tracefs.records() == [line, line]


@case(
    "write.parts",
    spec=f"{CORE}, lib/iov_iter.c:copy_from_iter",
    doc=f"{DOC}: vectors are the pieces of one index and payload",
    profiles="5.18..",
)
@variants(
    "parts",
    {
        "one": [b"\0\0\0\0\x44\x33\x22\x11"],
        "index_1_3": [b"\0", b"\0\0\0", b"\x44\x33\x22\x11"],
        "index_bytes": [b"\0", b"\0", b"\0", b"\0", b"\x44\x33\x22\x11"],
        "all_bytes": [b"\0", b"\0", b"\0", b"\0", b"\x44", b"\x33", b"\x22", b"\x11"],
        "empty_first": [b"", b"\0\0\0\0", b"\x44\x33\x22\x11"],
        "empty_between": [b"\0\0", b"", b"\0\0", b"", b"\x44\x33\x22\x11"],
        "empty_last": [b"\0\0\0\0", b"\x44\x33\x22\x11", b""],
    },
)
def test_parts(ue: UserEvents, parts: list[bytes]) -> None:
    """Index and payload may be cut into iovecs anywhere: it is one record."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    assert data.writev(parts).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x11223344 (287454020)", dump="44 33 22 11")]


@case(
    "write.records_in_order",
    spec=CORE,
    doc=f"{DOC}: every write is an entry of its own",
    tier="full",
    profiles="5.18..",
)
def test_records_in_order(ue: UserEvents) -> None:
    """Every write is one record, in the order of writing, whichever call carried it."""
    data = ue.open_data()
    data.register(ue.name() + " u16 n")
    ue.tracefs.enable(ue.name())
    data.write(b"\0\0\0\0\1\0")
    data.writev([b"\0\0\0\0", b"\2\0"])
    data.pwrite(b"\0\0\0\0\3\0", 0)
    data.pwritev([b"\0\0\0\0\4\0"], 0)
    assert ue.tracefs.records() == [
        ue.line("n=0x1 (1)", dump="01 00"),
        ue.line("n=0x2 (2)", dump="02 00"),
        ue.line("n=0x3 (3)", dump="03 00"),
        ue.line("n=0x4 (4)", dump="04 00"),
    ]


@case(
    "write.word_not_consulted",
    spec=f"{CORE}: the tracepoint decides, not the word",
    doc="Documentation/trace/user_events.rst@v6.12: Status: programs check the bit themselves",
    needs=("ebadf_when_disabled",),
    tier="full",
)
def test_word_not_consulted(ue: UserEvents) -> None:
    """The enable word is for the program: clearing or setting it changes no write."""
    data = ue.open_data()
    event = data.register(ue.name() + " u32 a")
    ue.process.store(event.word.address, b"\1\0\0\0")
    assert data.write(RECORD).errno == "EBADF"
    ue.tracefs.enable(ue.name())
    ue.process.store(event.word.address, b"\0\0\0\0")
    assert data.write(RECORD).value == 8
    assert ue.tracefs.records() == [f"{ue.name()}: a=0x41 (65)"]


# The write index


@case(
    "write.too_short_for_index",
    spec=CORE,
    doc=f"{DOC}: the write index must stand at the start of the data",
    profiles="5.18..",
)
@variants("data", {"none": b"", "one": b"\0", "two": b"\0\0", "three": b"\0\0\0"})
def test_too_short_for_index(ue: UserEvents, data: bytes) -> None:
    """A write of less than the four bytes of an index is EFAULT, enabled or not."""
    file = ue.open_data()
    file.register(ue.name())
    assert file.write(data).errno == "EFAULT"
    ue.tracefs.enable(ue.name())
    assert file.write(data).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(
    "write.parts_too_short_for_index",
    spec=CORE,
    doc=f"{DOC}: the write index must stand at the start of the data",
    profiles="5.18..",
)
@variants(
    "parts",
    {
        "one": [b"\0"],
        "one_and_two": [b"\0", b"\0\0"],
        "three_and_empty": [b"\0\0\0", b""],
    },
)
def test_parts_too_short_for_index(ue: UserEvents, parts: list[bytes]) -> None:
    """iovecs that hold one to three bytes together are EFAULT."""
    data = ue.open_data()
    data.register(ue.name())
    ue.tracefs.enable(ue.name())
    assert data.writev(parts).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(
    "write.writev_of_nothing",
    spec="fs/read_write.c:do_iter_readv_writev is not reached without a byte",
    doc=f"{DOC}: silent about empty vectors",
    profiles="5.18..",
)
@variants("parts", {"no_parts": [], "one_empty": [b""], "three_empty": [b"", b"", b""]})
def test_writev_of_nothing(ue: UserEvents, parts: list[bytes]) -> None:
    """writev without a byte returns 0, where write would be EFAULT."""
    data = ue.open_data()
    assert data.writev(parts).value == 0
    assert data.write(b"").errno == "EFAULT"


@case(
    "write.negative_index",
    spec=f"{CORE}: idx < 0",
    doc=f"{DOC}: the index is the one registration returned",
    needs=("negative_index_refused",),
    profiles="5.18..",
)
@variants(
    "index",
    {"minus_1": -1, "minus_4096": -4096, "int_min": -2147483648},
)
def test_negative_index(ue: UserEvents, index: int) -> None:
    """A negative index is EINVAL, also on a file where nothing is registered."""
    data = ue.open_data()
    assert data.write_event(index, b"\1\0\0\0").errno == "EINVAL"
    data.register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    assert data.write_event(index, b"\1\0\0\0").errno == "EINVAL"
    assert ue.tracefs.records() == []


@case(
    "write.unknown_index",
    spec=f"{CORE}: idx >= refs->count",
    doc=f"{DOC}: the index is the one registration returned",
    tier="full",
    profiles="5.18..",
)
@variants("index", {"next": 2, "65536": 65536, "int_max": 2147483647})
def test_unknown_index(ue: UserEvents, index: int) -> None:
    """An index past the last registered event of the file is ENOENT."""
    data = ue.open_data()
    data.register(ue.name("a"))
    data.register(ue.name("b"))
    ue.tracefs.enable(ue.name("a"))
    assert data.write_event(index).errno == "ENOENT"
    assert data.write_event(0).value == ue.dated("empty_payload", since=4, before=-1)


@case(
    "write.nothing_registered",
    spec=f"{CORE}: no refs",
    doc=f"{DOC}: an event is written through the descriptor that registered it",
    profiles="5.18..",
)
def test_nothing_registered(ue: UserEvents) -> None:
    """On a file where nothing was registered index 0 is ENOENT."""
    data = ue.open_data()
    assert data.write_event(0).errno == "ENOENT"


@case(
    "write.index_picks_the_event",
    spec=CORE,
    doc=f"{DOC}: the write index says which event the payload belongs to",
    tier="full",
    profiles="5.18..",
)
def test_index_picks_the_event(ue: UserEvents) -> None:
    """Each index of a file writes the event that registration gave it to."""
    data = ue.open_data()
    data.register(ue.name("a") + " u8 x")
    data.register(ue.name("b") + " u16 y")
    data.register(ue.name("c") + " u32 z")
    ue.tracefs.enable(ue.name("a"))
    ue.tracefs.enable(ue.name("b"))
    ue.tracefs.enable(ue.name("c"))
    assert data.write_event(2, b"\1\0\0\0").value == 8
    assert data.write_event(0, b"\2").value == 5
    assert data.write_event(1, b"\3\0").value == 6
    assert ue.tracefs.records() == [
        ue.line("z=0x1 (1)", name="c", dump="01 00 00 00"),
        ue.line("x=(2)", name="a", dump="02"),
        ue.line("y=0x3 (3)", name="b", dump="03 00"),
    ]


@case(
    "write.index_of_another_file",
    spec=f"{CORE}: info->refs belongs to the open file",
    doc=f"{DOC}: the index is unique to the descriptor used for the registration",
    tier="full",
    profiles="5.18..",
)
def test_index_of_another_file(ue: UserEvents) -> None:
    """Two opened files number their events apart: the same index is another event."""
    first, second, third = ue.open_data(), ue.open_data(), ue.open_data()
    first.register(ue.name("a") + " u8 x")
    first.register(ue.name("b") + " u8 y")
    second.register(ue.name("b") + " u8 y")
    ue.tracefs.enable(ue.name("a"))
    ue.tracefs.enable(ue.name("b"))
    assert first.write_event(0, b"\1").value == 5
    assert second.write_event(0, b"\2").value == 5
    assert second.write_event(1, b"\3").errno == "ENOENT"
    assert third.write_event(0, b"\4").errno == "ENOENT"
    assert ue.tracefs.records() == [
        ue.line("x=(1)", name="a", dump="01"),
        ue.line("y=(2)", name="b", dump="02"),
    ]


@case(
    "write.index_of_a_duplicate",
    spec=f"{CORE}: dup(2) shares the open file",
    doc=f"{DOC}: the index is unique to the descriptor used for the registration",
    tier="full",
    profiles="5.18..",
)
def test_index_of_a_duplicate(ue: UserEvents) -> None:
    """A duplicated descriptor shares the indices, and keeps them when the first closes."""
    data = ue.open_data()
    copy = data.dup()
    data.register(ue.name("a") + " u8 x")
    assert copy.register(ue.name("b") + " u8 y").index == 1
    ue.tracefs.enable(ue.name("a"))
    ue.tracefs.enable(ue.name("b"))
    assert data.write_event(1, b"\1").value == 5
    data.close()
    assert copy.write_event(0, b"\2").value == 5
    assert ue.tracefs.records() == [
        ue.line("y=(1)", name="b", dump="01"),
        ue.line("x=(2)", name="a", dump="02"),
    ]


@case(
    "write.index_in_a_child",
    spec=f"{CORE}: fork(2) shares the open file",
    doc=f"{DOC}: the index is unique to the descriptor used for the registration",
    tier="full",
    profiles="5.18..",
)
def test_index_in_a_child(ue: UserEvents) -> None:
    """Parent and child share the indices of an inherited descriptor in both directions."""
    data = ue.open_data()
    data.register(ue.name("a") + " u8 x")
    child = ue.fork(ue.process)
    inherited = data.of(child)
    assert inherited.register(ue.name("b") + " u8 y").index == 1
    child.exit()
    ue.tracefs.enable(ue.name("a"))
    ue.tracefs.enable(ue.name("b"))
    other = ue.fork(ue.process)
    assert data.of(other).write_event(0, b"\1").value == 5
    assert data.write_event(1, b"\2").value == 5
    assert ue.tracefs.records() == [
        ue.line("x=(1)", name="a", dump="01"),
        ue.line("y=(2)", name="b", dump="02"),
    ]


@case(
    "write.after_unregister",
    spec="trace_events_user.c:user_events_ioctl_unreg leaves the refs of the file",
    doc="Documentation/trace/user_events.rst@v6.12: Unregistering ends updates of the word",
    tier="full",
)
def test_after_unregister(ue: UserEvents) -> None:
    """The write index stays valid after the word was unregistered."""
    data = ue.open_data()
    event = data.register(ue.name() + " u32 a")
    assert data.unregister(event.word).value == 0
    ue.tracefs.enable(ue.name())
    assert data.write(RECORD).value == 8
    assert ue.tracefs.records() == [f"{ue.name()}: a=0x41 (65)"]


# Nobody listens


@case(
    "write.nobody_listens",
    spec=f"{CORE}: tp->key.enabled",
    doc=f"{DOC}: silent about what a write without a listener returns",
    tier="full",
    profiles="5.18..",
)
@variants("payload", {"exact": b"\1\0\0\0", "longer": b"\1\0\0\0more"})
def test_nobody_listens(ue: UserEvents, payload: bytes) -> None:
    """A write to an event that is not enabled, or not any more, is EBADF."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_event(0, payload).errno == errno
    assert data.writev([INDEX, payload]).errno == errno
    ue.tracefs.enable(ue.name())
    ue.tracefs.disable(ue.name())
    assert data.write_event(0, payload).errno == errno
    assert ue.tracefs.records() == []


@case(
    "write.listener_of_another_event",
    spec=f"{CORE}: each event has a tracepoint of its own",
    doc="Documentation/trace/user_events.rst@v6.12: Status: a tool attaches to one event",
    profiles="5.18..",
)
def test_listener_of_another_event(ue: UserEvents) -> None:
    """A listener of one event gets nothing of another event of the same file."""
    data = ue.open_data()
    data.register(ue.name("a") + " u8 x")
    data.register(ue.name("b") + " u8 x")
    ue.tracefs.enable(ue.name("a"))
    written = data.write_event(1, b"\1")
    assert written.errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_event(0, b"\1").value == 5
    assert ue.tracefs.records() == [ue.line("x=(1)", name="a", dump="01")]


@case(
    "write.tracing_off",
    spec="ring_buffer.c:ring_buffer_lock_reserve, trace_events_user.c:user_event_ftrace",
    doc=f"{DOC}: silent about tracing_on",
    isolation="global",
    tier="full",
    profiles="5.18..",
)
def test_tracing_off(ue: UserEvents) -> None:
    """With tracing_on 0 a write succeeds, records nothing and validates nothing."""
    data = ue.open_data()
    data.register(ue.name("a") + " u32 a")
    data.register(ue.name("b") + " __data_loc char[] s")
    ue.tracefs.enable(ue.name("a"))
    ue.tracefs.enable(ue.name("b"))
    ue.tracefs.write(TRACING_ON, "0\n")
    assert data.write(RECORD).value == 8
    assert data.write_event(1, b"\xff\xff\xff\xff").value == 8
    ue.tracefs.write(TRACING_ON, "1\n")
    errno = ue.dated("dynamic_fields_validated", since="EFAULT", before="")
    assert data.write_event(1, b"\xff\xff\xff\xff").errno == errno
    dumps = ue.dated("dynamic_fields_validated", since=[], before=["ff ff ff ff"])
    assert ue.tracefs.records() == dumps
