"""perf as a listener: who is told that it listens, and what it keeps alive.

The records it gets are in test_perf_records.
"""

from __future__ import annotations

import mmap

from conformance.cases.declare import case, variants
from conformance.cases.status_page import map_page
from conformance.cases.status_text import used_by, whole_status
from conformance.sut.perf import COUNTING, Wish, id_path, listen, open_raw, open_stored, store_id
from conformance.sut.places import ATTR
from conformance.sut.user_events import UserEvents

RST = "Documentation/trace/user_events.rst@v6.12"
TOOLS = f"{RST}: an event is enabled while any tool such as perf or ftrace is attached to it"
STATUS_TEXT = f"{RST}: Status: `Used by` names the kinds of listeners"
DELETION = f"{RST}: Deleting: only when nobody uses the event any more"
PERF_DOC = "include/uapi/linux/perf_event.h@v6.12"
REG = "trace_events_user.c:user_event_reg"
UPDATE = "trace_events_user.c:update_enable_bit_for"
PERF = ("perf_sink",)
PROFILES = "5.18.."
# perf_event_attr of a tool that starts its events later.
STOPPED = Wish(disabled=True)


@case("perf.enable_word", spec=UPDATE, doc=TOOLS, profiles="6.4..", facilities=("perf",))
@variants("wish", {"sampling": Wish(), "counting": COUNTING, "disabled": STOPPED})
def test_enable_word(ue: UserEvents, wish: Wish) -> None:
    """The bit is set from perf_event_open to close, whether perf counts already or not."""
    registered = ue.open_data().register(ue.name() + " u32 a", bit=3)
    seen = [registered.word.value]
    event = listen(ue.process, ue.name(), wish)
    seen.append(registered.word.value)
    event.enable()
    event.disable()
    seen.append(registered.word.value)
    event.close()
    seen.append(registered.word.value)
    assert seen == [0, 8, 8, 0]


@case(
    "perf.status_page",
    spec="trace_events_user.c:update_reg_page_for",
    doc="Documentation/trace/user_events.rst@v5.19 and @v6.1: Status: EVENT_STATUS_PERF is bit 1",
    profiles="5.18..6.3",
    facilities=("perf",),
)
@variants("wish", {"sampling": Wish(), "counting": COUNTING, "disabled": STOPPED})
def test_status_page(ue: UserEvents, wish: Wish) -> None:
    """perf is 2 in a status byte and ftrace beside it 3; later a bit says that anybody is there."""
    page = map_page(ue.process)
    place = ue.open_data().register(ue.name() + " u32 a").place
    seen = [page.shows(place)]
    event = listen(ue.process, ue.name(), wish)
    seen.append(page.shows(place))
    ue.tracefs.enable(ue.name())
    seen.append(page.shows(place))
    event.close()
    seen.append(page.shows(place))
    ue.tracefs.disable(ue.name())
    seen.append(page.shows(place))
    # The first version of all knew nothing of perf.
    bytes_ = ue.dated("perf_sink", since=[0, 2, 3, 1, 0], before=[0, 0, 1, 1, 0])
    assert seen == {"byte-status": bytes_, "bit-status": [0, 1, 1, 1, 0]}[ue.profile.generation]


@case(
    "perf.status_text",
    spec="trace_events_user.c:user_seq_show",
    doc=STATUS_TEXT,
    profiles=PROFILES,
    isolation="global",
    facilities=("perf",),
)
def test_status_text(ue: UserEvents) -> None:
    """user_events_status names perf behind ftrace, while each listens, and counts one event."""
    ue.open_data().register(ue.name())
    event = listen(ue.process, ue.name())
    lines = ue.dated(
        "perf_sink",
        since=ue.status_line(1, ue.name(), "perf") + "\nActive: 1\nBusy: 1\n",
        before=ue.status_line(1, ue.name()) + "\nActive: 1\nBusy: 0\n",
    )
    assert whole_status(ue) == lines
    ue.tracefs.enable(ue.name())
    both = ue.dated("perf_sink", since="ftrace perf", before="ftrace")
    assert whole_status(ue) == ue.status_line(1, ue.name(), both) + "\nActive: 1\nBusy: 1\n"
    event.close()
    assert whole_status(ue) == ue.status_line(1, ue.name(), "ftrace") + "\nActive: 1\nBusy: 1\n"
    ue.tracefs.disable(ue.name())
    assert whole_status(ue) == ue.status_line(1, ue.name()) + "\nActive: 1\nBusy: 0\n"


@case(
    "perf.two_listeners",
    spec="trace_event_perf.c:perf_trace_event_reg",
    doc=TOOLS,
    profiles=PROFILES,
    facilities=("perf",),
)
def test_two_listeners(ue: UserEvents) -> None:
    """perf listens until the last of its events is closed, whoever has it."""
    ue.open_data().register(ue.name())
    other = ue.new_process()
    mine, second, theirs = (listen(each, ue.name()) for each in (ue.process, ue.process, other))
    listens = ue.dated("perf_sink", since="perf", before="")
    mine.close()
    assert used_by(ue) == listens
    second.close()
    assert used_by(ue) == listens
    theirs.close()
    assert used_by(ue) == ""


@case(
    "perf.exit",
    spec="kernel/events/core.c:perf_release",
    doc=TOOLS,
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_exit(ue: UserEvents) -> None:
    """A tool that exits listens no more: its descriptors are closed and its rings go."""
    ue.open_data().register(ue.name())
    tool = ue.new_process()
    listen(tool, ue.name()).map()
    assert used_by(ue) == "perf"
    tool.exit()
    assert used_by(ue) == ""


@case(
    "perf.ring_outlives_descriptor",
    spec="kernel/events/core.c:perf_mmap",
    doc=TOOLS,
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_ring_outlives_descriptor(ue: UserEvents) -> None:
    """A mapped ring keeps perf listening, and filling it, when its descriptor is closed."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    ring = event.map()
    event.close()
    assert used_by(ue) == "perf"
    assert data.write_event(0, b"\x41\0\0\0").value == 8
    assert ring.records() == ["SAMPLE misc 1 size 24 raw 12: 41 00 00 00"]
    ring.unmap()
    assert used_by(ue) == ""


@case(
    "perf.forked_descriptor",
    spec="kernel/events/core.c:perf_release",
    doc=TOOLS,
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_forked_descriptor(ue: UserEvents) -> None:
    """A child has the descriptor and not the ring; perf listens until both are done with it."""
    ue.open_data().register(ue.name())
    tool = ue.new_process()
    event = listen(tool, ue.name())
    ring = event.map()
    child = ue.fork(tool)
    assert child.load(ring.address, 8).errno == "EFAULT"
    event.close()
    ring.unmap()
    assert used_by(ue) == "perf"
    child.exit()
    assert used_by(ue) == ""


@case(
    "perf.keeps_from_deletion",
    spec="trace_events_user.c:user_event_free, destroy_user_event",
    doc=DELETION,
    profiles=PROFILES,
    needs=(*PERF, "lasting_events"),
    facilities=("perf",),
)
def test_keeps_from_deletion(ue: UserEvents) -> None:
    """An event that perf listens to cannot be deleted by either interface, and keeps its fields."""
    ue.tracefs.command(f"u:{ue.name()} u32 a\n")
    event = listen(ue.process, ue.name())
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.command(f"-:{ue.name()} u32 a\n").errno == "EBUSY"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\n"
    event.close()
    assert data.delete(ue.name()).value == 0
    assert data.delete(ue.name()).errno == "ENOENT"


@case(
    "perf.keeps_alive",
    spec="trace_events_user.c:user_event_put",
    doc=f"{RST}: silent about events whose programs have gone while a tool listens",
    needs=(*PERF, "auto_delete"),
    profiles="6.5..",
    facilities=("perf",),
)
def test_keeps_alive(ue: UserEvents) -> None:
    """An event whose programs have gone stays while perf listens, and goes with it."""
    program = ue.new_process()
    program.open_data().register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    program.exit()
    assert ue.tracefs.status() == f"{ue.name()} # Used by perf\n"
    event.close()
    assert ue.tracefs.status(eventually=True) == ""


@case(
    "perf.registered_later",
    spec="trace_events_user.c:user_event_enabler_create",
    doc=TOOLS,
    needs=(*PERF, "lasting_events"),
    profiles="6.4..",
    facilities=("perf",),
)
def test_registered_later(ue: UserEvents) -> None:
    """A program that registers an event which perf listens to finds its bit set."""
    ue.tracefs.command(f"u:{ue.name()} u32 a\n")
    event = listen(ue.process, ue.name())
    registered = ue.open_data().register(ue.name() + " u32 a")
    assert registered.word.value == 1
    event.close()
    assert registered.word.value == 0


@case(
    "perf.multi_format",
    spec=REG,
    doc=f"{RST}: each format of a multi-format event is an event of its own",
    needs=(*PERF, "multi_format", "persist", "arguments_matched", "ebadf_when_disabled"),
    profiles="6.9..",
    facilities=("perf",),
)
def test_multi_format(ue: UserEvents) -> None:
    """perf listens to one format of a name, and the other is not enabled by it."""
    data = ue.open_data()
    one = data.register(ue.name() + " u32 a", flags=2)
    two = data.register(ue.name() + " u64 b", flags=2)
    # One name is one bucket of the table, in which the newest comes first.
    newest = ue.tracefs.status().splitlines()[0]
    event = listen(ue.process, newest, system="user_events_multi")
    ring = event.map()
    assert ue.tracefs.status().splitlines()[0] == f"{newest} # Used by perf"
    assert (one.word.value, two.word.value) == (0, 1)
    assert data.write_event(0, bytes(4)).errno == "EBADF"
    assert data.write_event(1, b"12345678").value == 12
    assert ring.records() == ["SAMPLE misc 1 size 32 raw 20: 31 32 33 34 35 36 37 38 00 00 00 00"]


# Opening


@case(
    "perf.unprivileged",
    spec="kernel/events/core.c:perf_allow_kernel",
    doc=f"{PERF_DOC}: exclude_kernel; Documentation/admin-guide/sysctl/kernel.rst: "
    "kernel.perf_event_paranoid is 2, which forbids what tells about the kernel",
    profiles=PROFILES,
    facilities=("perf",),
)
@variants(
    "wish, errno, listens",
    {
        # perf_trace_event_perm
        "raw": (Wish(exclude_kernel=True), "EPERM", ""),
        "kernel": (Wish(), "EACCES", ""),
        "counting": (Wish(period=0, sample_type=0, exclude_kernel=True), "", "perf"),
        "counting_kernel": (COUNTING, "EACCES", ""),
    },
)
def test_unprivileged(ue: UserEvents, wish: Wish, errno: str, listens: str) -> None:
    """Without capabilities raw records are EPERM, the kernel is EACCES, and counting is fine."""
    ue.open_data().register(ue.name() + " u32 a")
    user = ue.new_process()
    store_id(user, ue.name(), wish)
    user.setuid(1000)
    assert open_stored(user, wish).errno == errno
    shown = ue.dated("perf_sink", since=listens, before="")
    assert used_by(ue) == shown


@case(
    "perf.unprivileged_processor",
    spec="kernel/events/core.c:find_get_context: perf_allow_cpu",
    doc="Documentation/admin-guide/sysctl/kernel.rst@v6.12: perf_event_paranoid: from 1 on no "
    "events of processors",
    profiles=PROFILES,
    facilities=("perf",),
)
def test_unprivileged_processor(ue: UserEvents) -> None:
    """Without capabilities nobody listens to all processes of a processor: EACCES."""
    wish = Wish(period=0, sample_type=0, exclude_kernel=True)
    ue.open_data().register(ue.name())
    user = ue.new_process()
    store_id(user, ue.name(), wish)
    user.setuid(1000)
    assert open_stored(user, wish, pid=-1, cpu=0).errno == "EACCES"
    assert used_by(ue) == ""


@case(
    "perf.deleted_id",
    spec="trace_event_perf.c:perf_trace_init",
    doc=f"{PERF_DOC}: config of a tracepoint is the number of its event",
    profiles=PROFILES,
    needs=("lasting_events",),
    facilities=("perf",),
)
def test_deleted_id(ue: UserEvents) -> None:
    """The id of an event that was deleted is EINVAL, for whoever may open no event as well."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    wish = Wish(exclude_kernel=True)
    assert store_id(ue.process, ue.name(), wish).value == 8
    assert ue.open_data().delete(ue.name()).ok
    assert open_stored(ue.process, wish).errno == "EINVAL"
    assert ue.tracefs.read(id_path(ue.name())).errno == "ENOENT"
    ue.process.setuid(1000)
    # Without an event there is no permission to ask for, which would be EPERM.
    assert open_stored(ue.process, wish).errno == "EINVAL"


@case(
    "perf.wrong_config",
    spec="trace_event_perf.c:perf_trace_init",
    doc=f"{PERF_DOC}: config of a tracepoint is the number of its event",
    profiles=PROFILES,
    facilities=("perf",),
)
@variants("config", {"17-bits": 0x10000, "33-bits": 0x1_0000_FFFF, "all-bits": (1 << 64) - 1})
def test_wrong_config(ue: UserEvents, config: int) -> None:
    """A number that no event can have is EINVAL, and EACCES for whoever may not look at all."""
    assert open_raw(ue.process, 2, config).errno == "EINVAL"
    ue.process.setuid(1000)
    assert open_raw(ue.process, 2, config).errno == "EACCES"


@case(
    "perf.nobody_nowhere",
    spec="kernel/events/core.c:perf_event_alloc",
    doc=f"{PERF_DOC}: an event follows a process, or a processor, or a process on a processor",
    profiles=PROFILES,
    facilities=("perf",),
)
@variants("pid, cpu", {"everywhere": (-1, -1), "absent": (-1, 8192), "mine": (0, 8192)})
def test_nobody_nowhere(ue: UserEvents, pid: int, cpu: int) -> None:
    """Everybody everywhere, or a processor that no machine has, is EINVAL; nobody listens then."""
    ue.open_data().register(ue.name())
    assert listen(ue.process, ue.name(), pid=pid, cpu=cpu).errno == "EINVAL"
    assert used_by(ue) == ""


@case(
    "perf.reserved_bit",
    spec="kernel/events/core.c:perf_copy_attr",
    doc=f"{PERF_DOC}:perf_event_attr: the flags end with reserved bits, sample_type with its MAX",
    profiles=PROFILES,
    facilities=("perf",),
)
@variants("offset", {"flags": 47, "sample_type": 31})
def test_reserved_bit(ue: UserEvents, offset: int) -> None:
    """Bit 63 of flags or sample_type is EINVAL, for whoever may not look at all too."""
    ue.open_data().register(ue.name())
    store_id(ue.process, ue.name(), COUNTING)
    ue.process.store(ATTR + offset, b"\x80")
    assert open_stored(ue.process, COUNTING).errno == "EINVAL"
    # The bit alone was in the way.
    ue.process.store(ATTR + offset, b"\0")
    event = open_stored(ue.process, COUNTING)
    assert event.errno == ""
    event.close()
    ue.process.store(ATTR + offset, b"\x80")
    ue.process.setuid(1000)
    assert open_stored(ue.process, COUNTING).errno == "EINVAL"


# The ring


@case(
    "perf.ring_size",
    spec="kernel/events/core.c:perf_mmap, kernel/events/ring_buffer.c:rb_alloc",
    doc=f"{PERF_DOC}:perf_event_mmap_page: one page and 2^n behind it",
    profiles=PROFILES,
    facilities=("perf",),
)
@variants(
    "pages, errno",
    {
        "2": (2, ""),
        "1": (1, ""),
        "3": (3, ""),
        "4": (4, "EINVAL"),
        "5": (5, ""),
        "6": (6, "EINVAL"),
    },
)
def test_ring_size(ue: UserEvents, pages: int, errno: str) -> None:
    """A ring has 1 page that describes it, and 0, 1, 2, 4 behind it; other sizes are EINVAL."""
    ue.open_data().register(ue.name())
    event = listen(ue.process, ue.name())
    assert event.map(pages).mapped.errno == errno


@case(
    "perf.ring_refused",
    spec="kernel/events/core.c:perf_mmap",
    doc=f"{PERF_DOC}: silent about mappings that are private or lie elsewhere",
    profiles=PROFILES,
    facilities=("perf",),
)
@variants(
    "wish, shared, offset",
    {
        "private": (Wish(), False, 0),
        "offset": (Wish(), True, 4096),
        # The children of a process would all write to one ring.
        "inherit": (Wish(inherit=True), True, 0),
    },
)
def test_ring_refused(ue: UserEvents, wish: Wish, shared: bool, offset: int) -> None:
    """A ring that is private, does not begin at 0, or belongs to heirs as well is EINVAL."""
    ue.open_data().register(ue.name())
    event = listen(ue.process, ue.name(), wish)
    assert event.map(shared=shared, offset=offset).mapped.errno == "EINVAL"


@case(
    "perf.ring_twice",
    spec="kernel/events/core.c:perf_mmap",
    doc=f"{PERF_DOC}: silent about a ring that is mapped twice",
    profiles=PROFILES,
    needs=PERF,
    facilities=("perf",),
)
def test_ring_twice(ue: UserEvents) -> None:
    """A second mapping of the same size shows the same ring; one of another size is EINVAL."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    first, second = event.map(), event.map(protection=mmap.PROT_READ)
    assert event.map(3).mapped.errno == "EINVAL"
    data.write_event(0, b"\x41\0\0\0")
    assert first.records() == ["SAMPLE misc 1 size 24 raw 12: 41 00 00 00"]
    assert second.records() == ["SAMPLE misc 1 size 24 raw 12: 41 00 00 00"]
    first.unmap()
    data.write_event(0, b"\x42\0\0\0")
    assert second.lines()[0] == "head 48 tail 0"
    second.unmap()
    # What was in the ring went with its last mapping.
    assert event.map().lines() == ["head 0 tail 0"]


@case(
    "perf.ring_page",
    spec="kernel/events/core.c:perf_event_init_userpage",
    doc=f"{PERF_DOC}:perf_event_mmap_page: data_head, data_tail, data_offset and data_size from "
    "byte 1024 on",
    profiles=PROFILES,
    facilities=("perf",),
)
def test_ring_page(ue: UserEvents) -> None:
    """The first page says where records lie, from which byte on and how many bytes."""
    ue.open_data().register(ue.name())
    ring = listen(ue.process, ue.name()).map(3)
    place = b"\0\x10\0\0\0\0\0\0" + b"\0\x20\0\0\0\0\0\0"
    assert ue.process.load(ring.address + 1024, 32).data == bytes(16) + place
