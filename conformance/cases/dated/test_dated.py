"""Dated changes of events and bpf(2).

Each switch has the smallest program that shows it, here and in the other files of this folder.
When a case fails, these programs probe the kernel.  They hold a literal for both sides of their
switch, depend on no other switch where possible, and never wait for something that one of the sides
does not do.
"""

import struct

from conformance import ops
from conformance.abi.uapi import DIAG_IOCSUNREG
from conformance.cases.case import UserEvents, doc, spec, surface
from conformance.cases.support.format_text import print_fmt_of
from conformance.cases.support.registration import MULTI_FORMAT, PERSIST
from conformance.client.addresses import BUFFER, PAGE
from conformance.client.bpf import Bpf
from conformance.client.bpf_program import LogBuffer
from conformance.client.credentials import Directory
from conformance.client.tracefs import EVENTS, STATUS
from conformance.ops.bpf_assembler import exit_insn, mov64_imm
from conformance.ops.bpf_opcodes import R0

DOC = "include/uapi/linux/bpf.h@v4.1: silent about rights"
case = surface("dated", spec="kernel/bpf/syscall.c", doc=DOC, level="detail")


@case(level="behaviour", profiles="5.18..6.0", switch="events_made_as_root")
@doc("@v5.18: Registering: events show up in tracefs; silent about who registers them")
@spec("trace_events_user.c:user_event_set_call_visible")
def test_events_made_as_root(ue: UserEvents) -> None:
    """An unprivileged user's event has its directory; old kernels need permission to create it."""
    data = ue.open_data()
    ue.process.setuid(1000)
    assert data.register(ue.name()).errno == ""
    shown = ue.tracefs.enabled(ue.name())
    assert shown.errno == ue.dated("events_made_as_root", since="", before="ENOENT")


@case(level="behaviour", switch="text_flags_refused")
@doc("@v6.12: Command Format:")
@doc("flags follow the name after a colon, and none is supported; silent about others")
@spec("trace_events_user.c:user_event_parse_cmd")
def test_text_flags_refused(ue: UserEvents) -> None:
    """A colon in the name starts flags, which are rejected since 6.4 and were ignored before."""
    event = ue.open_data().register(ue.name() + ":FLAG u32 a")
    assert event.errno == ue.dated("text_flags_refused", since="EINVAL", before="")


# Without persist 6.4 and later reject every flag.
@case(level="contract", profiles="6.4..", needs="persist", switch="multi_format")
@doc("@v6.12: Registering: USER_EVENT_REG_MULTI_FORMAT is supported;")
@doc("a flag that is not gives -EINVAL")
@spec("trace_events_user.c:user_reg_get")
def test_multi_format(ue: UserEvents) -> None:
    """USER_EVENT_REG_MULTI_FORMAT is known since 6.9; before, it is EINVAL."""
    assert ue.event(flags=MULTI_FORMAT).errno == ue.dated("multi_format", since="", before="EINVAL")


@case(level="behaviour", profiles="5.18..6.0", switch="print_fmt_generated")
@spec("trace_events_user.c:user_event_set_print_fmt")
@doc("events.rst@v5.18: Event formats: print fmt says how to print an event")
def test_print_fmt_generated(ue: UserEvents) -> None:
    """The print fmt of an event names its fields; in the first kernels it was empty."""
    ue.event("u8 a")
    print_fmt = print_fmt_of(ue.tracefs.format(ue.name()))
    assert print_fmt == ue.dated("print_fmt_generated", since='"a=%u", REC->a', before='""')


@case(level="behaviour", profiles="5.18..6.0", switch="bpf_iter_ignored")
@doc("@v5.18: Command Format: flags follow the name, and none is supported;")
@doc("silent about showing them")
@spec("trace_events_user.c:user_seq_show")
def test_bpf_iter_ignored(ue: UserEvents) -> None:
    """The status shows no text flags; the first kernels showed BPF_ITER, which was one."""
    ue.open_data().register(ue.name() + ":BPF_ITER")
    flagged = ue.tracefs.status().endswith(" # FLAG:BPF_ITER\n")
    assert flagged == ue.dated("bpf_iter_ignored", since=False, before=True)


@case(level="behaviour", profiles="5.18..6.3", switch="two_status_pages")
@doc("@v6.1: Status: the size of the file is a page, or a multiple of it;")
@doc("silent about other lengths")
@spec("trace_events_user.c:user_status_mmap")
def test_two_status_pages(ue: UserEvents) -> None:
    """The status page has one page: mapping two is rejected unless it has two."""
    _, slot = ue.process.open(STATUS)
    mapped, _ = ue.process.map_status(slot, length=2 * PAGE)
    assert mapped.errno == ue.dated("two_status_pages", since="", before="EINVAL")


@case(spec="trace_events_user.c:user_event_put", level="contract", switch="auto_delete")
@doc("@v6.12: Deleting: by default an event is deleted when no references are left")
def test_auto_delete(ue: UserEvents) -> None:
    """An event is deleted with its last reference; before 6.4 it stayed and could be deleted."""
    process = ue.new_process()
    process.open_data().register(ue.name())
    process.exit()
    deleted = ue.open_data().delete(ue.name(), eventually=True)
    assert deleted.errno == ue.dated("auto_delete", since="ENOENT", before="")


@case(profiles="6.4..", needs="persist", switch="deferred_release")
@doc("@v6.12: Deleting: succeeds only if no references are left; silent about when they are")
@spec("trace_events_user.c:delayed_user_event_enabler_put")
def test_deferred_release(ue: UserEvents) -> None:
    """Unregistering holds the event until a grace period ends; before, it is deleted at once."""
    process, data = ue.process, ue.open_data()
    word = process.word()
    unreg = process.place(struct.pack("<IBBHQ", 16, 0, 0, 0, word.address))
    answers = set()
    # A grace period may end between the two calls of a batch, but not three times in a row.
    for number in range(3):
        owner = ue.open_data()
        owner.register(ue.name(str(number)), word=word, flags=PERSIST)
        owner.close()
        process.queue(ops.Ioctl(process.actor, data.slot, DIAG_IOCSUNREG, unreg))
        answers.add(data.delete(ue.name(str(number))).errno)
    assert ("EBUSY" in answers) == ue.dated("deferred_release", since=True, before=False)


@case(switch="directories_of_any_name", bug="event-name-slash")
@doc("@v6.12: Registering: events appear below events/ in tracefs;")
@doc("nothing is said of names that cannot")
@spec("fs/tracefs/event_inode.c:eventfs_iterate; fs/readdir.c:verify_dirent_name")
def test_directories_of_any_name(ue: UserEvents) -> None:
    """An event with a slash in its name is left out of events/; later, listing fails at it."""
    refused = ue.open_data().register(ue.name() + "/b").errno
    assert refused == ue.bug("event-name-slash", fixed="EINVAL", present="")
    ue.new_process().open_data().register(ue.name("good"))
    directory = Directory(ue.process, EVENTS, ue.prefix)
    directory.next()
    since = ue.dated("listing_ends_with_einval", since="EINVAL", before="EIO")
    errno = "" if refused else ue.dated("directories_of_any_name", since=since, before="")
    assert directory.next().errno == errno


@case(
    doc="@v6.12: Registering: events appear below events/ in tracefs; nothing is "
    "said of names that cannot",
    profiles="6.8..",
    needs="directories_of_any_name",
    switch="listing_ends_with_einval",
    bug="event-name-slash",
)
@spec("fs/tracefs/event_inode.c:eventfs_iterate; fs/readdir.c:filldir64")
def test_listing_ends_with_einval(ue: UserEvents) -> None:
    """Listing fails at a name with a slash: EIO, and EINVAL since 7.1."""
    refused = ue.open_data().register(ue.name() + "/").errno
    assert refused == ue.bug("event-name-slash", fixed="EINVAL", present="")
    ue.new_process().open_data().register(ue.name("good"))
    directory = Directory(ue.process, EVENTS, ue.prefix)
    assert directory.names() == ([ue.name("good")] if refused else [])
    errno = ue.dated("listing_ends_with_einval", since="EINVAL", before="EIO")
    assert directory.next().errno == ("" if refused else errno)


GOOD = [mov64_imm(R0, 0), exit_insn()]


@case(spec="__sys_bpf", isolation="none", switch="bpf_descriptor_suffices", facilities="bpf")
def test_bpf_descriptor_suffices(ue: UserEvents) -> None:
    """A process without capabilities can use a map by descriptor; in old kernels it cannot."""
    map_ = Bpf(ue.process).map()
    ue.process.setuid()
    errno = ue.dated("bpf_descriptor_suffices", since="ENOENT", before="EPERM")
    assert map_.lookup(b"key.").errno == errno


@case(isolation="none", switch="bpf_log_without_buffer", facilities="bpf")
@spec("kernel/bpf/log.c:bpf_verifier_log_attr_valid")
@doc("log_buf is the buffer of user space, log_size its size")
def test_bpf_log_without_buffer(ue: UserEvents) -> None:
    """A log level needs no buffer, and a buffer may have one byte; both were EINVAL."""
    system = Bpf(ue.process)
    alone = ue.dated("bpf_log_without_buffer", since="", before="EINVAL")
    short = ue.dated("bpf_log_without_buffer", since="ENOSPC", before="EINVAL")
    assert system.load(GOOD, log=LogBuffer(1)).errno == alone
    assert system.load(GOOD, log=LogBuffer(1, 1, ue.process.place(bytes(8)))).errno == short


@case(spec="__sys_bpf", isolation="none", switch="bpf_attributes_before_rights", facilities="bpf")
def test_bpf_attributes_before_rights(ue: UserEvents) -> None:
    """An unprivileged user gets the error of the map attributes; old kernels return EPERM first."""
    ue.process.setuid()
    errno = ue.dated("bpf_attributes_before_rights", since="EINVAL", before="EPERM")
    assert Bpf(ue.process).map(key_size=0).errno == errno


@case(spec="bpf_prog_load", isolation="none", switch="bpf_license_read_last", facilities="bpf")
@doc("prog_type, insns and license are used by BPF_PROG_LOAD")
def test_bpf_license_read_last(ue: UserEvents) -> None:
    """All-zero attributes are E2BIG: no instructions; old kernels check the license first."""
    errno = ue.dated("bpf_license_read_last", since="E2BIG", before="EFAULT")
    assert Bpf(ue.process).call(5, bytes(48), slot=20).errno == errno


@case(switch="iovecs_walked", spec="lib/iov_iter.c:copy_iovec_from_user")
@doc("@v6.12: Writing Data: silent; writev(2) reports errors of its own")
def test_iovecs_walked(ue: UserEvents) -> None:
    """A negative length is EINVAL before an unreadable iovec is reached; before, EFAULT."""
    data = ue.open_data()
    vector = ue.process.place(struct.pack("<QQ", BUFFER, 1 << 63))
    seen = ue.process.run(ops.Writev(ue.process.actor, data.slot, vector, 2))
    assert seen.errno == ue.dated("iovecs_walked", since="EINVAL", before="EFAULT")
