"""seccomp filters on the system calls of user_events programs."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.credentials import Credentials
from conformance.ops.credentials import Capability

case = surface("rights", spec="kernel/seccomp.c:__seccomp_filter", level="detail", tier="full")


@case(doc="Overview: programs use ioctl() and write() or writev(); of filters it says nothing")
@variants({"eperm": "EPERM", "enosys": "ENOSYS", "eacces": "EACCES"})
def test_filter_of_ioctl(ue: UserEvents, errno: str) -> None:
    """A filter that rejects ioctl stops registrations; a registered event can still be written."""
    data = ue.event("u8 a", enabled=True).data
    assert Credentials(ue.process).filter("ioctl", errno=errno).errno == ""
    assert (data.register(ue.name("more")).errno, data.delete(ue.name()).errno) == (errno, errno)
    assert data.write_event(0, b"\x05").value == 5
    assert ue.tracefs.records() == [ue.line("a=(5)", dump="05")]


@case(spec="trace_events_user.c:user_event_enabler_write", level="behaviour", profiles="6.4..")
@doc("Status: the kernel updates the registered bit; silent about filters of the program")
def test_filtered_program_learns(ue: UserEvents) -> None:
    """The kernel updates the enable word of a process that may make almost no system call."""
    event = ue.event()
    Credentials(ue.process).filter("ioctl", "writev", "pwrite64", "pwritev", errno="EPERM")
    event.enable()
    assert event.word.value == 1
    event.disable()
    assert event.word.value == 0


@case(doc="Writing Data: write() or writev() of the data file")
def test_filter_of_writev(ue: UserEvents) -> None:
    """If writev is rejected, write of one buffer does the same."""
    event = ue.event("u8 a; u8 b", enabled=True)
    Credentials(ue.process).filter("writev", "pwritev", errno="ENOSYS")
    assert event.data.writev([b"\0\0\0\0", b"\x05", b"\x06"]).errno == "ENOSYS"
    assert event.data.pwritev([b"\0\0\0\0", b"\x05\x06"], 0).errno == "ENOSYS"
    assert event.write(b"\x05\x06").value == 6
    assert ue.tracefs.records() == [ue.line("a=(5)", "b=(6)", dump="05 06")]


@case(doc="Overview: programs use ioctl() and write() or writev(); of filters it says nothing")
def test_filter_before_everything(ue: UserEvents) -> None:
    """The filter decides before any other check: no argument is read."""
    data = ue.open_data()
    closed = ue.open_data()
    closed.close()
    Credentials(ue.process).filter("ioctl", "writev", errno="ENOLINK")
    assert data.ioctl(0xC0082A00, 0).errno == "ENOLINK"
    assert closed.ioctl(0xC0082A00, 0).errno == "ENOLINK"
    assert closed.writev_at([(0, 1 << 63)]).errno == "ENOLINK"


@case(doc="Overview: programs use ioctl() and write() or writev(); of filters it says nothing")
def test_filter_in_children(ue: UserEvents) -> None:
    """A child inherits the filter; other processes do not have it."""
    data = ue.open_data()
    Credentials(ue.process).filter("ioctl", errno="EPERM")
    child = ue.fork(ue.process)
    assert data.of(child).ioctl(0xC0082A00, 0).errno == "EPERM"
    assert ue.new_process().open_data().register(ue.name()).errno == ""


@case(spec="seccomp_prepare_filter", profiles="6.4..", needs="persist", tier="quick")
@doc("Overview: programs use ioctl() and write() or writev(); of filters it says nothing;")
@doc("nor of no_new_privs")
def test_no_new_privileges(ue: UserEvents) -> None:
    """PR_SET_NO_NEW_PRIVS alone changes nothing; it only permits a filter."""
    data = ue.open_data()
    user = Credentials(ue.process)
    user.become_with(Capability.PERFMON)
    assert user.filter("ioctl", errno="EPERM").errno == "EACCES"
    user.no_new_privileges()
    assert data.register(ue.name(), flags=1).errno == ""
    assert user.filter("ioctl", errno="EPERM").errno == ""
    assert data.register(ue.name("more"), flags=1).errno == "EPERM"
