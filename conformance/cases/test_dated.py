"""What the dated switches changed: for each one the smallest program that shows it.

A run asks a kernel with these programs before its first case, so they hold a literal for
both sides of their switch, need no other one where that can be had, and wait for nothing
that one of the sides never does.
"""

from __future__ import annotations

import struct

from conformance.abi.layouts import DIAG_IOCSUNREG
from conformance.cases.declare import case
from conformance.cases.format_text import fields_of, print_fmt_of
from conformance.cases.recorder import Recorder
from conformance.program import operations as op
from conformance.sut.perf import listen
from conformance.sut.places import PAGE
from conformance.sut.tracefs import STATUS
from conformance.sut.user_events import UserEvents

DOC = "Documentation/trace/user_events.rst@v6.12"
COMMAND = f"{DOC}: Command Format: the fields of a definition, and when they are the same"
DELETING = f"{DOC}: Deleting: an event goes with its last reference"
FLAGS = f"{DOC}: Command Format: name[:FLAG1[,FLAG2...]], and no flag is defined"
PAYLOAD = "Documentation/trace/user_events.rst@v5.18: Writing Data: silent about bad payloads"
TRACE = f"{DOC}: silent; events are viewed with ftrace"
CORE = "trace_events_user.c:user_events_write_core"
MATCH = "trace_events_user.c:user_event_match, user_fields_match"

# enum user_reg_flag of the uapi header.
PERSIST = 1
MULTI_FORMAT = 2


# What was there before 5.18 was released: as long as a byte said whether anybody listens
BEGINNING = "5.18..6.0"


@case(
    "dated.print_fmt_generated",
    spec="trace_events_user.c:user_event_set_print_fmt",
    doc="Documentation/trace/events.rst@v5.18: Event formats: print fmt says how to print an event",
    profiles=BEGINNING,
    switch="print_fmt_generated",
)
def test_print_fmt_generated(ue: UserEvents) -> None:
    """The print fmt of an event names its fields; at first it was always empty."""
    ue.open_data().register(ue.name() + " u8 a")
    print_fmt = print_fmt_of(ue.tracefs.format(ue.name()))
    printing = '"a=%u", REC->a'
    assert print_fmt == ue.dated("print_fmt_generated", since=printing, before='""')


@case(
    "dated.deletion_arguments_matched",
    spec=MATCH,
    doc="Documentation/trace/user_events.rst@v5.18: Deleting: silent about fields",
    profiles=BEGINNING,
    switch="deletion_arguments_matched",
)
def test_deletion_arguments_matched(ue: UserEvents) -> None:
    """By other fields no event is found; at first its name was enough."""
    ue.open_data().register(ue.name() + " u32 a")
    found = ue.tracefs.command(f"-:{ue.name()} u64 b\n")
    # Nothing by that text, or an event that is in use.
    assert found.errno == ue.dated("deletion_arguments_matched", since="ENOENT", before="EBUSY")


@case(
    "dated.unreadable_payload_refused",
    spec=f"{CORE}: fault_in_iov_iter_readable",
    doc=PAYLOAD,
    profiles=BEGINNING,
    switch="unreadable_payload_refused",
)
def test_unreadable_payload_refused(ue: UserEvents) -> None:
    """A payload that ends in memory that cannot be read is EFAULT; at first it was cut off."""
    data = ue.open_data()
    data.register(ue.name() + " u16 a")
    ue.tracefs.enable(ue.name())
    address = ue.process.map() + PAGE - 5
    ue.process.store(address, bytes(5))
    written = data.write_at(address, 6)
    assert written.errno == ue.dated("unreadable_payload_refused", since="EFAULT", before="")


@case(
    "dated.payload_size_checked",
    spec=f"{CORE}: user->min_size",
    doc=PAYLOAD,
    profiles=BEGINNING,
    switch="payload_size_checked",
)
def test_payload_size_checked(ue: UserEvents) -> None:
    """A payload shorter than the fields is EINVAL; at first it was recorded as it came."""
    data = ue.open_data()
    data.register(ue.name() + " u16 a")
    ue.tracefs.enable(ue.name())
    written = data.write_event(0, b"\1")
    assert written.errno == ue.dated("payload_size_checked", since="EINVAL", before="")


@case(
    "dated.dynamic_fields_validated",
    spec="trace_events_user.c:user_event_validate",
    doc=PAYLOAD,
    profiles=BEGINNING,
    switch="dynamic_fields_validated",
)
def test_dynamic_fields_validated(ue: UserEvents) -> None:
    """A dynamic field that ends behind its record is EFAULT; at first nobody looked."""
    data = ue.open_data()
    data.register(ue.name() + " __rel_loc u8[] a")
    ue.tracefs.enable(ue.name())
    written = data.write_event(0, b"\0\0\1\0")
    assert written.errno == ue.dated("dynamic_fields_validated", since="EFAULT", before="")


@case(
    "dated.events_made_as_root",
    spec="trace_events_user.c:user_event_set_call_visible",
    doc="Documentation/trace/user_events.rst@v5.18: Registering: events show up below "
    "events/user_events",
    profiles=BEGINNING,
    switch="events_made_as_root",
)
def test_events_made_as_root(ue: UserEvents) -> None:
    """The event of an ordinary user has its directory; at first only who could look made one."""
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.register(ue.name()).errno == ""
    shown = ue.tracefs.enabled(ue.name())
    assert shown.errno == ue.dated("events_made_as_root", since="", before="ENOENT")


@case(
    "dated.bpf_iter_ignored",
    spec="trace_events_user.c:user_seq_show",
    doc="Documentation/trace/user_events.rst@v5.18: Command Format: name[:FLAG1[,FLAG2...]]",
    profiles=BEGINNING,
    switch="bpf_iter_ignored",
)
def test_bpf_iter_ignored(ue: UserEvents) -> None:
    """The status shows no text flags; at first it showed BPF_ITER, which was one."""
    ue.open_data().register(ue.name() + ":BPF_ITER")
    flagged = ue.tracefs.status().endswith(" # FLAG:BPF_ITER\n")
    assert flagged == ue.dated("bpf_iter_ignored", since=False, before=True)


@case(
    "dated.bpf_programs_run",
    spec="trace_events_user.c:user_event_bpf, user_event_perf",
    doc=f"{DOC}: silent; until 5.18-rc1 programs were given a struct user_bpf_context",
    profiles="5.18..",
    needs=("perf_sink",),
    switch="bpf_programs_run",
    facilities=("bpf_tracing",),
)
def test_bpf_programs_run(ue: UserEvents) -> None:
    """A BPF program can be attached, and nobody runs it but the merge window of 5.18."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    recorder = Recorder(ue.process)
    assert recorder.attach(listen(ue.process, ue.name())).value == 0
    assert data.write_event(0, bytes(8)).value == 12
    assert recorder.take().runs == ue.dated("bpf_programs_run", since=1, before=0)


# Registering and finding


@case(
    "dated.strings_formatted_safely",
    spec="trace_events_user.c:user_field_set_string, user_dyn_field_set_string",
    doc=COMMAND,
    # The model formats nothing.
    profiles="5.18..",
    needs=("strings_formatted_safely",),
    switch="strings_formatted_safely",
)
def test_strings_formatted_safely(ue: UserEvents) -> None:
    """A percent sign in a field is text; before 6.1 it was a format and 5% as good as %."""
    ue.open_data().register(ue.name() + " u8 a%%")
    found = ue.tracefs.command(f"-:{ue.name()} u8 a%5%\n")
    # Nothing by that text, or an event that is in use.
    assert found.errno == ue.dated("strings_formatted_safely", since="ENOENT", before="EBUSY")


@case(
    "dated.struct_size_matched",
    spec=MATCH,
    doc=COMMAND,
    profiles="5.18..",
    # Without it nothing was compared.
    needs=("deletion_arguments_matched",),
    switch="struct_size_matched",
)
def test_struct_size_matched(ue: UserEvents) -> None:
    """The size of a struct is compared; before that no struct was like itself."""
    ue.open_data().register(ue.name() + " struct s a 20")
    found = ue.tracefs.command(f"-:{ue.name()} struct s a 20\n")
    assert found.errno == ue.dated("struct_size_matched", since="EBUSY", before="ENOENT")


@case(
    "dated.arguments_matched",
    spec="trace_events_user.c:user_event_parse",
    doc=f"{COMMAND}; a name with other fields is refused",
    profiles="5.18..",
    switch="arguments_matched",
)
def test_arguments_matched(ue: UserEvents) -> None:
    """A name that is taken with other fields is EADDRINUSE; before it gave the old event."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    again = data.register(ue.name() + " u64 b")
    assert again.errno == ue.dated("arguments_matched", since="EADDRINUSE", before="")


@case(
    "dated.null_arguments_matched",
    spec="trace_events_user.c:user_event_match",
    doc=COMMAND,
    profiles="5.18..",
    switch="null_arguments_matched",
)
def test_null_arguments_matched(ue: UserEvents) -> None:
    """A name alone is an event without fields; before it was every event of that name."""
    ue.open_data().register(ue.name() + " u32 a")
    found = ue.tracefs.command(f"-:{ue.name()}\n")
    assert found.errno == ue.dated("null_arguments_matched", since="ENOENT", before="EBUSY")


@case(
    "dated.unspaced_fields_match",
    spec="trace_events_user.c:insert_space_after_semis",
    doc=COMMAND,
    needs=("arguments_matched",),
    switch="unspaced_fields_match",
)
def test_unspaced_fields_match(ue: UserEvents) -> None:
    """Fields need no space between them to be found again; before 6.10 they did."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a;u32 b")
    again = data.register(ue.name() + " u32 a;u32 b")
    assert again.errno == ue.dated("unspaced_fields_match", since="", before="EADDRINUSE")


@case(
    "dated.text_flags_refused",
    spec="trace_events_user.c:user_event_parse_cmd",
    doc=FLAGS,
    profiles="5.18..",
    switch="text_flags_refused",
)
def test_text_flags_refused(ue: UserEvents) -> None:
    """A colon in the name begins flags, which are refused since 6.5 and were ignored before."""
    event = ue.open_data().register(ue.name() + ":FLAG u32 a")
    assert event.errno == ue.dated("text_flags_refused", since="EINVAL", before="")


@case(
    "dated.multi_format",
    spec="trace_events_user.c:user_reg_get",
    doc=f"{DOC}: Registering: a flag that is not supported is refused with -EINVAL",
    # Without it 6.5 and later refuse every flag.
    needs=("persist",),
    switch="multi_format",
)
def test_multi_format(ue: UserEvents) -> None:
    """USER_EVENT_REG_MULTI_FORMAT is known since 6.9, and refused with EINVAL before."""
    event = ue.open_data().register(ue.name(), flags=MULTI_FORMAT)
    assert event.errno == ue.dated("multi_format", since="", before="EINVAL")


# Lifetime


@case(
    "dated.auto_delete",
    spec="trace_events_user.c:user_event_put",
    doc=DELETING,
    profiles="5.18..",
    switch="auto_delete",
)
def test_auto_delete(ue: UserEvents) -> None:
    """An event goes with its program; before 6.5 it stayed and could be deleted."""
    process = ue.new_process()
    process.open_data().register(ue.name())
    process.exit()
    deleted = ue.open_data().delete(ue.name(), eventually=True)
    assert deleted.errno == ue.dated("auto_delete", since="ENOENT", before="")


@case(
    "dated.deferred_release",
    spec="trace_events_user.c:delayed_user_event_enabler_put",
    doc=f"{DOC}: Deleting: succeeds only when nobody holds a reference",
    needs=("persist",),
    switch="deferred_release",
)
def test_deferred_release(ue: UserEvents) -> None:
    """Unregistering may hold the event for a moment; before, it could be deleted at once."""
    process, data = ue.process, ue.open_data()
    word = process.word()
    unreg = process.place(struct.pack("<IBBHQ", 16, 0, 0, 0, word.address))
    owner = ue.open_data()
    owner.register(ue.name(), word=word, flags=PERSIST)
    owner.close()
    # In one batch: only a grace period of RCU lies between the two, and it may be over.
    process.queue(op.Ioctl(process.actor, data.slot, DIAG_IOCSUNREG, unreg))
    deleted = data.delete(ue.name()).errno
    assert deleted in ue.dated("deferred_release", since=("", "EBUSY"), before=("",))


# Writing


@case(
    "dated.negative_index_refused",
    spec=f"{CORE}: idx < 0",
    doc=f"{DOC}: Writing Data: the index is the one registration returned",
    profiles="5.18..",
    switch="negative_index_refused",
)
def test_negative_index_refused(ue: UserEvents) -> None:
    """A negative index is EINVAL even where nothing is registered; it used to be ENOENT."""
    written = ue.open_data().write_event(-1)
    assert written.errno == ue.dated("negative_index_refused", since="EINVAL", before="ENOENT")


@case(
    "dated.ebadf_when_disabled",
    spec=f"{CORE}: tp->key.enabled",
    doc=f"{DOC}: Writing Data: silent about what a write without a listener returns",
    profiles="5.18..",
    switch="ebadf_when_disabled",
)
def test_ebadf_when_disabled(ue: UserEvents) -> None:
    """A write that nobody listens to is EBADF; before it returned the length."""
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    assert data.write_event(0, b"\1").value == ue.dated("ebadf_when_disabled", since=-1, before=5)


@case(
    "dated.empty_payload",
    spec="trace_events_user.c:user_event_ftrace: copy_nofault",
    doc=f"{DOC}: Writing Data: the data begin with the write index, the rest is the payload",
    profiles="5.18..",
    switch="empty_payload",
)
def test_empty_payload(ue: UserEvents) -> None:
    """An event without fields is recorded by its index alone; before 6.5 that was EFAULT."""
    data = ue.open_data()
    data.register(ue.name())
    ue.tracefs.enable(ue.name())
    assert data.write_event(0).errno == ue.dated("empty_payload", since="", before="EFAULT")


# The status page


@case(
    "dated.two_status_pages",
    spec="trace_events_user.c:user_status_mmap",
    doc="Documentation/trace/user_events.rst@v6.1: Status: user_events_status is mapped",
    profiles="5.18..6.3",
    switch="two_status_pages",
)
def test_two_status_pages(ue: UserEvents) -> None:
    """The status has one page: a mapping of two is refused but where it has two."""
    _, slot = ue.process.open(STATUS)
    mapped, _ = ue.process.map_status(slot, length=2 * PAGE)
    assert mapped.errno == ue.dated("two_status_pages", since="", before="EINVAL")


# The generic tracing code


@case(
    "dated.array_length_of_field",
    spec="trace_events.c:f_show",
    doc="trace_events.c:f_show@v6.12: the comment there: TYPE[LEN] is shown as TYPE VAR[LEN]",
    profiles="5.18..",
    switch="array_length_of_field",
)
def test_array_length_of_field(ue: UserEvents) -> None:
    """What follows the brackets of an array's type is not shown in `format`; once it was."""
    # What stands between the brackets is left to format.array_length.
    ue.open_data().register(ue.name() + " char[4]x a")
    assert fields_of(ue.tracefs.format(ue.name())) == [
        ue.dated(
            "array_length_of_field",
            since="field:char a[]; offset:8; size:4; signed:1;",
            before="field:char a[4]x; offset:8; size:4; signed:1;",
        )
    ]


@case(
    "dated.ids_reused",
    spec="trace_output.c:register_trace_event",
    doc="Documentation/trace/events.rst@v6.12: silent about the numbers of events",
    profiles="5.18..",
    needs=("lasting_events",),
    isolation="global",
    switch="ids_reused",
)
def test_ids_reused(ue: UserEvents) -> None:
    """A record of an event that is gone is shown as the next event's; earlier as nobody's."""
    ue.tracefs.command("u:first u16 a\n")
    data = ue.open_data()
    event = data.register("first u16 a")
    ue.tracefs.enable("first")
    assert data.write_event(0, b"hi").value == 6
    ue.tracefs.disable("first")
    if ue.profile.has("remote_enable"):
        data.unregister(event.word)
    data.close()
    assert ue.open_data().delete("first", eventually=True).value == 0
    assert ue.tracefs.bodies() == ["Unknown type N"]
    ue.tracefs.command("u:next char[2] a\n")
    shown = ue.dated("remote_enable", since="next: a=hi", before="68 69")
    text = ue.dated("ids_reused", since=shown, before="Unknown type N")
    assert ue.tracefs.bodies() == [text]
    ue.tracefs.command("-:next char[2] a\n")


@case(
    "dated.long_records_kept",
    spec="ring_buffer.c:rb_reserve_next_event",
    doc=f"{DOC}: Writing Data: silent about a limit",
    # Before, the time since the last record decides: nothing can be said of one.
    needs=("long_records_kept",),
    switch="long_records_kept",
)
def test_long_records_kept(ue: UserEvents) -> None:
    """A record of 4064 payload bytes, the longest there is, is kept."""
    data = ue.open_data()
    data.register(ue.name() + " struct s a 4064")
    ue.tracefs.enable(ue.name())
    data.write_event(0, bytes(4064))
    assert ue.tracefs.records() == [f"{ue.name()}: a=<INVALID-SIZE>"]


@case(
    "dated.unprintable_text_as_hex",
    spec="trace_output.c:print_fields: FILTER_DYN_STRING",
    doc=TRACE,
    profiles="6.4..",
    switch="unprintable_text_as_hex",
)
def test_unprintable_text_as_hex(ue: UserEvents) -> None:
    """A dynamic string with an unprintable byte prints as it is; later as dots and hex."""
    data = ue.open_data()
    data.register(ue.name() + " __data_loc char[] a")
    ue.tracefs.enable(ue.name())
    data.write_event(0, b"\x0c\0\4\0" + b"a\1b\0")
    text = ue.dated("unprintable_text_as_hex", since="a.b. (61:01:62:00)", before="a\1b")
    assert ue.tracefs.records() == [f"{ue.name()}: a={text}"]


@case(
    "dated.long_values_as_symbols",
    spec="trace_output.c:print_fields: size 8",
    doc=f"{TRACE}; since 6.15 an address of the kernel prints as a symbol",
    profiles="6.4..",
    # Which symbol it is depends on where the kernel lies.
    without=("long_values_as_symbols",),
    switch="long_values_as_symbols",
)
def test_long_values_as_symbols(ue: UserEvents) -> None:
    """The address at which kernels begin prints in digits, like any other 64-bit value."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    ue.tracefs.enable(ue.name())
    data.write_event(0, b"\0\0\0\x81\xff\xff\xff\xff")
    assert ue.tracefs.records() == [f"{ue.name()}: a=0xffffffff81000000 (-2130706432)"]
