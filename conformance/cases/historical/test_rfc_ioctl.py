"""DIAG_IOCSDEL and other ioctls of the first version, and its patch message taken literally."""

import mmap
import os

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.rfc_v1 import bound_data
from conformance.client.addresses import KERNEL_HALF
from conformance.client.data_file import DataFile
from conformance.client.rfc_v1 import delete_at, local_offset, register
from conformance.client.tracefs import DATA, MMAP, STATUS

DOC = "trace_events_user.c@rfc-v1, message of the patch"
case = surface("rfc", spec="delete_user_event", doc=DOC, level="behaviour", profiles="rfc-v1")

# Numbers that the patch does not define.
UNKNOWN = {
    "reg-of-releases": 0xC0082A00,
    "unreg-of-releases": 0x40082A02,
    "next": 0x2A03,
    "reg-of-32-bits": 0x40042A00,
    "offset-with-a-size": 0x80082A02,
    "zero": 0,
}


@case(spec="user_events_ioctl", isolation="none")
@doc("trace_events_user.c@rfc-v1: DIAG_IOCQLOCOFFSET returns the offset that data locations need")
@variants(("plain", os.O_RDWR, 0), ("wild", os.O_RDONLY, KERNEL_HALF))
def test_local_offset(ue: UserEvents, opened: int, argument: int) -> None:
    """The third ioctl, which has no argument, returns the size of the common fields: 8."""
    assert local_offset(ue.open_data(opened), argument).value == 8


@case(spec="user_events_ioctl")
@doc("trace_events_user.c@rfc-v1: DIAG_IOCQLOCOFFSET returns the offset that data locations need")
def test_local_offset_of_event(ue: UserEvents) -> None:
    """It returns the same on a descriptor bound to an event, as in `format`."""
    assert local_offset(bound_data(ue, ue.name() + ";u8\ta\t1\t0")).value == 8
    assert "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n" in ue.tracefs.format(ue.name())


@case(spec="user_events_ioctl", doc="trace_events_user.c@rfc-v1: three ioctls")
@variants(UNKNOWN)
def test_unknown_ioctl(ue: UserEvents, number: int) -> None:
    """Any other ioctl is ENOTTY, whatever its argument points to."""
    text = ue.process.place(ue.name().encode() + b"\0")
    assert ue.open_data().ioctl(number, text).errno == "ENOTTY"
    assert ue.tracefs.definitions() == ""


@case(spec="user_events_mmap_fops", doc="ioctls are issued to user_events_data")
def test_ioctl_of_mmap_file(ue: UserEvents) -> None:
    """The file that the page is mapped from supports none of the ioctls: ENOTTY."""
    _, slot = ue.process.open(MMAP, os.O_RDWR)
    page = DataFile(ue.process, slot)
    assert register(page, ue.name()).errno == "ENOTTY"
    assert local_offset(page).errno == "ENOTTY"
    assert page.delete(ue.name()).errno == "ENOTTY"


@case(spec="create_user_tracefs", isolation="none")
@doc("two files are added; the review asked for one that tells who listens")
def test_no_status_file(ue: UserEvents) -> None:
    """There is no user_events_status: it came after the review."""
    assert ue.tracefs.read(STATUS).errno == "ENOENT"
    assert ue.process.open(STATUS)[0].errno == "ENOENT"


@case(doc="delete ioctls are issued to user_events_data")
def test_delete(ue: UserEvents) -> None:
    """An unreferenced event is deleted by its name, once."""
    bound_data(ue, ue.name() + ";u8\ta\t1\t0").close()
    data = ue.open_data()
    assert data.delete(ue.name()).value == 0
    assert ue.tracefs.definitions() == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"
    assert data.delete(ue.name()).errno == "ENOENT"


@case(doc="delete ioctls are issued to user_events_data")
def test_delete_and_register(ue: UserEvents) -> None:
    """After deletion a name may have other fields."""
    bound_data(ue, ue.name() + ";u8\ta\t1\t0").close()
    data = ue.open_data()
    data.delete(ue.name())
    assert register(data, ue.name() + ";u16\tb\t2\t0").errno == ""
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u16 b\n"


@case(doc="delete ioctls are issued to user_events_data")
@variants(
    ("prefix", "ue:{}"),
    ("fields", "{};u8\ta\t1\t0"),
    ("semicolon", "{};"),
    ("system", "user_events/{}"),
    ("space", "{} "),
    ("never", "{}x"),
    ("empty", ""),
)
def test_delete_unknown(ue: UserEvents, name: str) -> None:
    """The argument is the exact name; anything else is ENOENT."""
    bound_data(ue, ue.name() + ";u8\ta\t1\t0").close()
    assert ue.open_data().delete(name.format(ue.name())).errno == "ENOENT"
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 a\n"


@case(doc="delete ioctls are issued to user_events_data")
@variants({"space": "{} u32 a", "colon": "{}:b", "slash": "{}/b"})
def test_delete_odd_name(ue: UserEvents, name: str) -> None:
    """An event of any name can be deleted by it."""
    bound_data(ue, name.format(ue.name())).close()
    assert ue.open_data().delete(ue.name()).errno == "ENOENT"
    assert ue.open_data().delete(name.format(ue.name())).value == 0


@case(doc="trace_events_user.c@rfc-v1: an event is deleted if it is no longer being used")
def test_delete_bound(ue: UserEvents) -> None:
    """An event bound to any descriptor, even the caller's, is in use: EBUSY."""
    data = bound_data(ue, ue.name())
    other = bound_data(ue, ue.name())
    assert data.delete(ue.name()).errno == "EBUSY"
    data.close()
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"
    other.close()
    assert ue.open_data().delete(ue.name()).value == 0


@case(spec="user_events_release")
@doc("trace_events_user.c@rfc-v1: an event is deleted if it is no longer being used")
def test_delete_bound_in_child(ue: UserEvents) -> None:
    """Closing the last copy of a descriptor drops its reference to the event."""
    data = bound_data(ue, ue.name())
    child = ue.fork(ue.process)
    copy = data.dup()
    data.close()
    copy.close()
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"
    child.exit()
    assert ue.open_data().delete(ue.name()).value == 0


@case(doc="trace_events_user.c@rfc-v1: an event is deleted if it is no longer being used")
def test_delete_listened_to(ue: UserEvents) -> None:
    """An event enabled in ftrace is in use: EBUSY."""
    ue.tracefs.command(f"ue:{ue.name()}\n")
    ue.tracefs.enable(ue.name())
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert ue.open_data().delete(ue.name()).value == 0


@case(spec="mm/util.c:strndup_user", level="detail")
@doc("trace_events_user.c@rfc-v1: a description has at most 512 bytes")
@variants({"null": 0, "kernel-half": KERNEL_HALF, "unmapped": 0x1000_0000})
def test_delete_string(ue: UserEvents, address: int) -> None:
    """An unreadable name is EFAULT, one of 512 bytes is EINVAL."""
    data = bound_data(ue, ue.name())
    assert delete_at(data, address).errno == "EFAULT"
    assert data.delete("x" * 512).errno == "EINVAL"
    assert data.delete("x" * 511).errno == "ENOENT"


@case(doc="trace_events_user.c@rfc-v1: says nothing of rights")
def test_delete_by_anybody(ue: UserEvents) -> None:
    """A read-only descriptor is enough to delete events of others without any capability."""
    ue.tracefs.command(f"ue:{ue.name()}\n")
    data = ue.open_data(os.O_RDONLY)
    ue.process.setuid(1000)
    assert data.delete(ue.name()).value == 0
    assert ue.tracefs.definitions() == ""


@case(spec="user_events_mmap, user_events_ioctl, user_events_write", isolation="global")
@doc("the page is mapped, `test` registered, and written to if its byte says so")
def test_typical_use(ue: UserEvents) -> None:
    """The program of the message writes while its byte is not zero, and is recorded."""
    opened, page_fd = ue.process.open(MMAP, os.O_RDWR)
    assert opened.errno == ""
    mapped, page_data = ue.process.map_status(page_fd, protection=mmap.PROT_READ)
    assert mapped.errno == ""
    _, slot = ue.process.open(DATA, os.O_RDWR)
    data_fd = DataFile(ue.process, slot)
    data_id = register(data_fd, "test").value
    assert data_id == 1
    for on, payload in ((True, b"one"), (False, b"two"), (True, b"three")):
        ue.tracefs.enable("test") if on else ue.tracefs.disable("test")
        if ue.process.load_number(page_data + data_id, 1):
            assert data_fd.write(payload).value == len(payload)
    assert ue.tracefs.records() == ["6f 6e 65", "74 68 72 65 65"]
    ue.tracefs.disable("test")
    assert ue.process.load_number(page_data + data_id, 1) == 0


@case(spec="register_user_event; trace_dynevent.c:dyn_event_release", isolation="global")
@doc("events are isolated from those of the kernel")
def test_beside_kernel_event(ue: UserEvents) -> None:
    """An event may have the name of a kernel event, which is not affected."""
    data = bound_data(ue, "sched_switch;u8\ta\t1\t0")
    ue.tracefs.enable("sched_switch")
    assert ue.tracefs.enabled("sched_switch").text == "1\n"
    assert ue.tracefs.enabled("sched_switch", system="sched").text == "0\n"
    assert data.write(b"\x01").value == 1
    ue.tracefs.disable("sched_switch")
    data.close()
    assert ue.tracefs.command("-:sched/sched_switch\n").errno == "ENOENT"
    assert ue.tracefs.command("-:sched_switch\n").errno == ""
    assert ue.tracefs.enabled("sched_switch").errno == "ENOENT"
    assert ue.tracefs.enabled("sched_switch", system="sched").text == "0\n"
    assert ue.open_data().delete("sched_switch").errno == "ENOENT"
