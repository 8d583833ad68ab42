"""DIAG_IOCSREG of the first version: takes a string and returns the index of a byte."""

import os

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.rfc_v1 import PATCH, bound_data, page_of
from conformance.client.addresses import KERNEL_HALF
from conformance.client.rfc_v1 import register, register_at

SPEC = "register_user_event: find_first_zero_bit"
DOC = "trace_events_user.c@rfc-v1: a command is the name, then fields, each after a semicolon"
ASSOCIATED = "a file that is associated with an event cannot be with another"
case = surface("rfc", SPEC, DOC, level="behaviour", profiles="rfc-v1")


@case(spec="register_user_event", isolation="global")
@doc(f"{PATCH}: the ioctl returns the number of the byte")
@doc("that shows the status; trace_events_user.c@rfc-v1: byte 0 is kept for failures")
def test_index_counts(ue: UserEvents) -> None:
    """Events get bytes from 1 on, by ioctl and by command."""
    assert register(ue.open_data(), "one").value == 1
    assert ue.tracefs.command("ue:two\n").value == 7
    assert register(ue.open_data(), "three").value == 3
    assert register(ue.open_data(), "two").value == 2


@case(isolation="global")
@doc(f"{PATCH}: the ioctl returns the number of the byte that shows the status;")
@doc("silent about deletion")
@variants({"ioctl": False, "dynamic_events": True})
def test_index_reused(ue: UserEvents, by_command: bool) -> None:
    """A new event gets the lowest free byte, even one used before."""
    ue.tracefs.command("ue:one\nue:two\nue:three\n")
    ue.tracefs.command("-:two\n") if by_command else ue.open_data().delete("two")
    assert register(ue.open_data(), "four").value == 2
    assert register(ue.open_data(), "five").value == 4


@case(spec="user_events_ioctl", isolation="global")
@doc(f"{PATCH}: a byte of the page; the review asked whether it is the event's ID")
def test_index_is_no_id(ue: UserEvents) -> None:
    """The result of a registration is not the event's id."""
    assert register(ue.open_data(), ue.name()).value == 1
    assert ue.tracefs.read(ue.tracefs.event_path(ue.name(), "id")).text != "1\n"


@case(spec="find_user_event")
@doc(f"{PATCH}: the ioctl returns the number of the byte that shows the status")
@variants(
    ("other-fields", "{};u32\tb\t4\t0"),
    ("no-fields", "{}"),
    ("wrong-fields", "{};u32"),
    ("same", "{};u8\ta\t1\t0"),
)
def test_existing_name(ue: UserEvents, again: str) -> None:
    """An existing name matches whatever the fields, and keeps its own."""
    first = register(ue.open_data(), ue.name() + ";u8\ta\t1\t0")
    assert register(ue.new_process().open_data(), again.format(ue.name())) == first
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 a\n"


@case(spec="user_events_ioctl", doc=ASSOCIATED)
@variants({"other": "{}x", "same": "{}", "wrong": "{}x;u32", "empty": ""})
def test_one_event(ue: UserEvents, again: str) -> None:
    """A descriptor bound to an event gets no second one: EMFILE, even for the same name."""
    data = bound_data(ue, ue.name())
    assert register(data, again.format(ue.name())).errno == "EMFILE"
    assert ue.tracefs.definitions() == f"ue:{ue.name()}\n"


@case(spec="user_events_ioctl", doc=ASSOCIATED)
def test_one_event_per_open(ue: UserEvents) -> None:
    """Copies of a descriptor share its event; another open of the file has none."""
    data = bound_data(ue, ue.name())
    assert register(data.dup(), ue.name("more")).errno == "EMFILE"
    child = ue.fork(ue.process)
    assert register(data.of(child), ue.name("more")).errno == "EMFILE"
    assert register(child.open_data(), ue.name("more")).errno == ""


@case(spec="user_events_ioctl", doc=ASSOCIATED)
def test_binding_follows_copies(ue: UserEvents) -> None:
    """An event registered through one copy of a descriptor is bound to all copies."""
    data = ue.open_data()
    copy = data.dup()
    assert data.write(b"x").errno == "ENOENT"
    register(copy, ue.name())
    assert data.write(b"x").value == 1
    assert register(data, ue.name()).errno == "EMFILE"


@case(spec="user_events_ioctl; mm/util.c:strndup_user", level="detail")
@doc("a file that is associated with an event cannot be with another;")
@doc("trace_events_user.c@rfc-v1: a description has at most 512 bytes")
@variants(
    ("null", 0, "", "EFAULT"),
    ("kernel-half", KERNEL_HALF, "", "EFAULT"),
    ("too-long", None, "x" * 512, "EINVAL"),
)
def test_string_before_binding(ue: UserEvents, address: int | None, text: str, errno: str) -> None:
    """The string is checked before the descriptor: its error wins over EMFILE."""
    data = bound_data(ue, ue.name())
    place = data.process.place(text.encode() + b"\0") if address is None else address
    assert register_at(data, place).errno == errno


@case(spec="user_events_ioctl", doc="says nothing of errors")
def test_refused_leaves_free(ue: UserEvents) -> None:
    """A failed registration leaves the descriptor without an event."""
    data = ue.open_data()
    assert register_at(data, 0).errno == "EFAULT"
    assert register(data, "x" * 512).errno == "EINVAL"
    assert data.write(b"x").errno == "ENOENT"
    assert register(data, ue.name()).errno == ""
    assert ue.tracefs.definitions() == f"ue:{ue.name()}\n"


@case(spec="mm/util.c:strndup_user", level="detail", isolation="global")
@doc("a description has at most 512 bytes")
@variants((511, ""), (512, "EINVAL"), (4096, "EINVAL"))
def test_string_length(ue: UserEvents, length: int, errno: str) -> None:
    """A description has up to 511 bytes and a NUL; a longer one is EINVAL."""
    text = "e;u8\ta\t1\t0\t" + "x" * (length - 11)
    assert register(ue.open_data(), text).errno == errno
    assert ue.tracefs.definitions(whole=True) == ("" if errno else "ue:e;u8 a\n")


@case(spec="mm/util.c:strndup_user", doc="says nothing of errors", level="detail")
@variants({"null": 0, "kernel-half": KERNEL_HALF, "unmapped": 0x1000_0000})
def test_string_unreadable(ue: UserEvents, address: int) -> None:
    """An unreadable string is EFAULT."""
    assert register_at(ue.open_data(), address).errno == "EFAULT"


@case(spec="mm/util.c:strndup_user", doc="says nothing of errors", level="detail")
def test_string_cut_off(ue: UserEvents) -> None:
    """A string may end with its mapping, but not past it."""
    data = ue.open_data()
    assert register_at(data, ue.process.place(ue.name().encode())).errno == "EFAULT"
    whole = ue.process.place(ue.name().encode() + b"\0")
    assert register_at(data, whole).errno == ""


@case(spec="user_event_parse_cmd")
@variants(
    ("space", "{} b", "{} b"),
    ("release-fields", "{} u32 a; u32 b", "{} u32 a"),
    ("flags", "{}:BPF_ITER", "{}:BPF_ITER"),
    ("tab", "{}\tb;u8\ta\t1\t0", "{}\tb"),
    ("space-at-the-end", "{} ;u8\ta\t1\t0", "{} "),
    ("percent", "{}%s%n", "{}%s%n"),
)
def test_name_to_semicolon(ue: UserEvents, text: str, name: str) -> None:
    """Everything before the first semicolon is the name, spaces and colons included."""
    assert register(ue.open_data(), text.format(ue.name())).errno == ""
    assert ue.tracefs.enabled(name.format(ue.name())).text == "0\n"


@case(spec="register_user_event", level="detail", isolation="global")
@variants({"slash": "a/b", "empty": "", "dot": ".", "dots": "..", "long": "x" * 256})
def test_name_without_directory(ue: UserEvents, name: str) -> None:
    """A name that no directory can have is accepted; without one the fields are not read."""
    assert register(ue.open_data(), f"{name};u8\ta\t1\t0").value == 1
    assert register(ue.open_data(), name).value == 1
    assert ue.tracefs.definitions(whole=True) == f"ue:{name}\n"


@case(spec="register_user_event", doc="a description has at most 512 bytes", isolation="global")
def test_name_longest(ue: UserEvents) -> None:
    """A name of 255 bytes, NAME_MAX, is like any other."""
    name = "x" * 255
    assert register(ue.open_data(), f"{name};u8\ta\t1\t0").value == 1
    assert ue.tracefs.enabled(name).text == "0\n"
    assert ue.tracefs.definitions(whole=True) == f"ue:{name};u8 a\n"


@case(spec="user_events_ioctl", doc=f"{PATCH}: the file is opened O_RDWR")
@variants({"read-only": os.O_RDONLY, "write-only": os.O_WRONLY})
def test_any_open_mode(ue: UserEvents, opened: int) -> None:
    """A descriptor registers and deletes with any open mode."""
    assert register(ue.open_data(opened), ue.name()).errno == ""
    assert ue.open_data(opened).delete(ue.name()).errno == "EBUSY"
    assert ue.open_data(opened).delete(ue.name("x")).errno == "ENOENT"


@case(spec="trace_events.c:event_create_dir; trace_events_user.c:user_events_ioctl", level="detail")
@doc("says nothing of permission")
def test_ordinary_user(ue: UserEvents) -> None:
    """A process without capabilities creates events, though without a directory."""
    data, other = ue.open_data(), ue.open_data()
    ue.process.setuid(1000)
    assert register(data, ue.name() + ";u8\ta\t1\t0").errno == ""
    assert data.write(b"x").value == 1
    # tracefs creates no directory for it, and without one the fields are not read.
    assert ue.tracefs.enable(ue.name()).errno == "ENOENT"
    assert ue.tracefs.definitions() == f"ue:{ue.name()}\n"
    data.close()
    assert other.delete(ue.name()).value == 0


@case(doc="a page of events, the first byte of it kept", tier="full", isolation="global")
def test_no_index_left(ue: UserEvents) -> None:
    """There are 4095 bytes; then a new event is EMFILE, and its fields are not read."""
    page = page_of(ue.process)
    names = [f"e{number}" for number in range(1, 4095)]
    for start in range(0, len(names), 64):
        lines = "".join(f"ue:{name}\n" for name in names[start : start + 64])
        assert ue.tracefs.command(lines).errno == ""
    assert register(ue.open_data(), "last").value == 4095
    ue.tracefs.enable("last")
    assert page.load(4095).data == b"\x01"
    ue.tracefs.disable("last")
    assert register(ue.open_data(), "more").errno == "EMFILE"
    assert register(ue.open_data(), "more;u32").errno == "EMFILE"
    assert ue.tracefs.command("ue:more\n").errno == "EMFILE"
    # An unreadable string is detected before, and an existing event needs no byte.
    assert register_at(ue.open_data(), 0).errno == "EFAULT"
    assert register(ue.open_data(), "e17;u32").value == 17
    # A freed byte is used by the next event.
    ue.tracefs.command("-:e18\n")
    assert register(ue.open_data(), "more").value == 18
    rest = [name for name in names if name not in ("e17", "e18")]
    for start in range(0, len(rest), 64):
        lines = "".join(f"-:{name}\n" for name in rest[start : start + 64])
        assert ue.tracefs.command(lines).errno == ""
