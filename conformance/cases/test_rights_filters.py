"""Filters of system calls, and a kernel that is locked down."""

from __future__ import annotations

import os

from conformance.cases.declare import case, variants
from conformance.cases.opened_up import USER, close_again, opened_up, opening
from conformance.program.rights import CLONE_NEWNS, Capability
from conformance.sut.process import Process
from conformance.sut.rights import Rights
from conformance.sut.tracefs import DATA, DYNAMIC_EVENTS, STATUS, TRACE, TRACING_ON
from conformance.sut.user_events import UserEvents

RST = "Documentation/trace/user_events.rst@v6.12"
CALLS = f"{RST}: Overview: programs use ioctl() and write() or writev(); of filters it says nothing"
WRITING = f"{RST}: Writing Data: write() or writev() of the data file"
LOCKED = f"{RST}: nothing is said of lockdown"
FILTER = "kernel/seccomp.c:__seccomp_filter"
SECURITY = "/sys/kernel/security"
LOCKDOWN = f"{SECURITY}/lockdown"


@case("rights.filter_of_ioctl", spec=FILTER, doc=CALLS, profiles="5.18..")
@variants("errno", {"eperm": "EPERM", "enosys": "ENOSYS", "eacces": "EACCES"})
def test_filter_of_ioctl(ue: UserEvents, errno: str) -> None:
    """A filter that refuses ioctl stops registrations; what is registered is written on."""
    data = ue.open_data()
    data.register(f"{ue.name()} u8 a")
    ue.tracefs.enable(ue.name())
    assert Rights(ue.process).filter("ioctl", errno=errno).errno == ""
    assert data.register(ue.name("more")).errno == errno
    assert data.delete(ue.name()).errno == errno
    assert data.write_event(0, b"\x05").value == 5
    assert ue.tracefs.records() == [ue.line("a=(5)", dump="05")]
    ue.tracefs.disable(ue.name())


@case(
    "rights.filtered_program_learns",
    spec="trace_events_user.c:user_event_enabler_write",
    doc=f"{CALLS}; Enablement: the kernel updates the bit",
)
def test_filtered_program_learns(ue: UserEvents) -> None:
    """The kernel tells a program that may call next to nothing when somebody listens."""
    data = ue.open_data()
    event = data.register(ue.name())
    Rights(ue.process).filter("ioctl", "writev", "pwrite64", "pwritev", errno="EPERM")
    ue.tracefs.enable(ue.name())
    assert event.word.value == 1
    ue.tracefs.disable(ue.name())
    assert event.word.value == 0


@case("rights.filter_of_writev", spec=FILTER, doc=WRITING, profiles="5.18..")
def test_filter_of_writev(ue: UserEvents) -> None:
    """Where writev is refused write suffices: it says the same in one piece."""
    data = ue.open_data()
    data.register(f"{ue.name()} u8 a; u8 b")
    ue.tracefs.enable(ue.name())
    Rights(ue.process).filter("writev", "pwritev", errno="ENOSYS")
    assert data.writev([b"\0\0\0\0", b"\x05", b"\x06"]).errno == "ENOSYS"
    assert data.pwritev([b"\0\0\0\0", b"\x05\x06"], 0).errno == "ENOSYS"
    assert data.write_event(0, b"\x05\x06").value == 6
    assert ue.tracefs.records() == [ue.line("a=(5)", "b=(6)", dump="05 06")]
    ue.tracefs.disable(ue.name())


@case("rights.filter_before_everything", spec=FILTER, doc=CALLS, profiles="5.18..")
def test_filter_before_everything(ue: UserEvents) -> None:
    """What the filter says comes before any mistake: no argument is looked at."""
    data = ue.open_data()
    closed = ue.open_data()
    closed.close()
    Rights(ue.process).filter("ioctl", "writev", errno="ENOLINK")
    assert data.ioctl(0xC0082A00, 0).errno == "ENOLINK"
    assert closed.ioctl(0xC0082A00, 0).errno == "ENOLINK"
    assert closed.writev_at([(0, 1 << 63)]).errno == "ENOLINK"


@case("rights.filter_in_children", spec=FILTER, doc=CALLS, profiles="5.18..")
def test_filter_in_children(ue: UserEvents) -> None:
    """A child inherits the filter, and no other process has it."""
    data = ue.open_data()
    Rights(ue.process).filter("ioctl", errno="EPERM")
    child = ue.fork(ue.process)
    assert data.of(child).ioctl(0xC0082A00, 0).errno == "EPERM"
    assert ue.new_process().open_data().register(ue.name()).errno == ""


@case(
    "rights.no_new_privileges",
    spec="kernel/seccomp.c:seccomp_prepare_filter",
    doc=f"{CALLS}; nor of no_new_privs",
    needs=("persist",),
)
def test_no_new_privileges(ue: UserEvents) -> None:
    """That a program gives up new privileges changes nothing, but that it may have a filter."""
    data = ue.open_data()
    user = Rights(ue.process)
    user.become_with(Capability.PERFMON)
    assert user.filter("ioctl", errno="EPERM").errno == "EACCES"
    user.no_new_privileges()
    assert data.register(ue.name(), flags=1).errno == ""
    assert user.filter("ioctl", errno="EPERM").errno == ""
    assert data.register(ue.name("more"), flags=1).errno == "EPERM"


# Lockdown


def lock_down(process: Process, level: str) -> None:
    """Lock the kernel down, until the next boot."""
    root = Rights(process)
    root.unshare(CLONE_NEWNS)
    root.mount("securityfs", SECURITY)
    root.write(LOCKDOWN, f"{level}\n")


@case(
    "rights.lockdown_hides_traces",
    spec="trace.c:tracing_check_open_get_tr; trace_dynevent.c:dyn_event_open",
    doc=LOCKED,
    profiles="5.18..",
    isolation="fatal",
    tier="full",
)
@variants(
    "level, errno",
    {"confidentiality": ("confidentiality", "EPERM"), "integrity": ("integrity", "")},
)
def test_lockdown_hides_traces(ue: UserEvents, level: str, errno: str) -> None:
    """Lockdown for confidentiality refuses what shows traces or makes events by command: EPERM."""
    data = ue.open_data()
    data.register(ue.name())
    lock_down(ue.new_process(), level)
    assert opening(ue.process, DYNAMIC_EVENTS, os.O_RDONLY).errno == errno
    assert opening(ue.process, DYNAMIC_EVENTS, os.O_WRONLY).errno == errno
    assert opening(ue.process, TRACING_ON, os.O_WRONLY).errno == errno
    assert ue.tracefs.enable(ue.name()).errno == errno
    # The last: who reads the buffer keeps it from growing to its size for the first event.
    assert opening(ue.process, TRACE, os.O_RDONLY).errno == errno


@case(
    "rights.lockdown_leaves_programs_alone",
    spec="trace_events_user.c:user_data_fops, user_status_fops",
    doc=LOCKED,
    profiles="5.18..",
    isolation="fatal",
    tier="full",
)
def test_lockdown_leaves_programs_alone(ue: UserEvents) -> None:
    """Programs notice nothing: they open, register, write, and who listens goes on listening."""
    data = ue.open_data()
    data.register(f"{ue.name()} u8 a")
    ue.tracefs.enable(ue.name())
    lock_down(ue.new_process(), "confidentiality")
    assert data.write_event(0, b"\x05").value == 5
    again = ue.open_data()
    assert again.register(f"{ue.name()} u8 a").index == 0
    assert again.register(ue.name("new")).index == 1
    assert ue.tracefs.status(eventually=True).count("\n") == 2
    assert opening(ue.process, STATUS, os.O_RDONLY).errno == ""


@case(
    "rights.lockdown_lets_events_persist",
    spec="trace_events_user.c:user_event_parse, delete_user_event",
    doc=LOCKED,
    needs=("persist",),
    isolation="fatal",
    tier="full",
)
def test_lockdown_lets_events_persist(ue: UserEvents) -> None:
    """Events that persist are made and deleted through the data file, locked down or not."""
    lock_down(ue.new_process(), "confidentiality")
    first, second = ue.open_data(), ue.open_data()
    event = first.register(ue.name(), flags=1)
    assert event.errno == ""
    first.unregister(event.word)
    first.close()
    assert second.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.write(DYNAMIC_EVENTS, f"u:{ue.name()}\n").errno == "EPERM"


@case(
    "rights.lockdown_is_not_lifted",
    spec="security/lockdown/lockdown.c:lock_kernel_down",
    doc=LOCKED,
    profiles="5.18..",
    isolation="fatal",
    tier="full",
)
def test_lockdown_is_not_lifted(ue: UserEvents) -> None:
    """A level is raised and never lowered: EPERM."""
    root = Rights(ue.process)
    root.unshare(CLONE_NEWNS)
    root.mount("securityfs", SECURITY)
    assert root.write(LOCKDOWN, "somewhat\n").errno == "EINVAL"
    assert root.write(LOCKDOWN, "integrity\n").value == 10
    assert root.write(LOCKDOWN, "integrity\n").errno == "EPERM"
    assert root.write(LOCKDOWN, "confidentiality").value == 15
    assert root.write(LOCKDOWN, "none\n").errno == "EPERM"
    assert opening(ue.process, TRACE, os.O_RDONLY).errno == "EPERM"


@case(
    "rights.denied_before_lockdown",
    spec="fs/namei.c:do_open; trace_dynevent.c:dyn_event_open",
    doc=LOCKED,
    profiles="5.18..",
    isolation="fatal",
    tier="full",
)
def test_denied_before_lockdown(ue: UserEvents) -> None:
    """The mode comes before lockdown: EACCES for who may not open, EPERM for who may."""
    administrator = opened_up(ue)
    lock_down(ue.new_process(), "confidentiality")
    user = Rights(ue.process)
    user.become(USER)
    assert opening(ue.process, DYNAMIC_EVENTS, os.O_RDONLY).errno == "EACCES"
    administrator.chmod(DYNAMIC_EVENTS, 0o644)
    assert opening(ue.process, DYNAMIC_EVENTS, os.O_RDONLY).errno == "EPERM"
    assert opening(ue.process, DATA).errno == ""
    close_again(administrator, DYNAMIC_EVENTS)
