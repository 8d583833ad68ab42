"""Header of 5.18 to 6.3: the offsets that the kernel reads and writes in its two struct user_reg.

Structures are laid out by hand here: the literal is the byte offset.
"""

import struct

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.status_page_registration import IOCSREG, ioctl_error, overlay, reg_of

SPEC = "user_events_ioctl_reg"
DOC = "include/linux/user_events.h@v5.19"
IN_6_1 = "include/linux/user_events.h@v6.1"
IN_BOTH = f"{DOC} and @v6.1"
case = surface("header", SPEC, DOC, level="contract", profiles="5.18..6.0")

IOCSUNREG = 0x40082A02


def register_third(ue: UserEvents) -> tuple[bytes, bytes]:
    """Register event 3 as index 1 of a descriptor: the user_reg, with 8 more bytes on each side."""
    ue.tracefs.command("u:a\nu:b\n")
    data = ue.register("a")
    raw = reg_of(ue, "c")
    at = ue.process.map()
    ue.process.store(at, b"\xdd" * 8 + raw + b"\xdd" * 8)
    assert data.ioctl(IOCSREG, at + 8).value == 0
    return raw, ue.process.load(at, len(raw) + 16).data or b""


@case(spec="user_reg_get")
@doc("struct user_reg: not packed; size, a hole of 4 bytes, name_args, status_index, write_index")
@variants(
    ("size-0", 0, b"\x00", "EFAULT"),
    ("size-1", 1, b"\x10", "E2BIG"),
    ("size-2", 2, b"\x01", "E2BIG"),
    ("size-3", 3, b"\x01", "E2BIG"),
    ("hole-4", 4, b"\xff\xff\xff\xff", ""),
    ("name_args-8", 8, bytes(8), "EFAULT"),
    ("name_args-15", 15, b"\xff", "EFAULT"),
    ("outputs-16", 16, b"\xff" * 8, ""),
)
def test_byte_status_reads_at(ue: UserEvents, offset: int, content: bytes, errno: str) -> None:
    """Until 6.0 size is at 0 and name_args at 8; the other bytes of user_reg are ignored."""
    raw = overlay(reg_of(ue, ue.name()), offset, content)
    assert ioctl_error(ue.open_data(), raw) == errno


@case(spec="user_reg_get", level="behaviour")
@doc("struct user_reg: size is that of the structure being used; silent about smaller ones")
@variants(
    ("24", b"\x18", 24, ""),
    ("23-of-24", b"\x18", 23, "EFAULT"),
    ("23", b"\x17", 23, ""),
    ("16", b"\x10", 16, ""),
    ("15-of-16", b"\x10", 15, "EFAULT"),
    ("8-of-16", b"\x10", 8, "EFAULT"),
    ("3-of-4", b"\x04", 3, "EFAULT"),
)
def test_byte_status_minimum(ue: UserEvents, size: bytes, present: int, errno: str) -> None:
    """Until 6.0 the kernel reads exactly as many bytes as size says."""
    raw = overlay(reg_of(ue, ue.name()), 0, size)
    assert ioctl_error(ue.open_data(), raw[:present]) == errno


@case(isolation="global")
@doc("struct user_reg: two outputs after name_args, status_index and write_index")
def test_byte_status_writes_at(ue: UserEvents) -> None:
    """Until 6.0 status_index is stored at 16 and write_index at 20; nothing else is written."""
    raw, after = register_third(ue)
    assert after[:24] == b"\xdd" * 8 + raw[:16]
    assert after[24:] == b"\3\0\0\0" + b"\1\0\0\0" + b"\xdd" * 8


@case(spec="user_reg_get", level="behaviour")
@doc("struct user_reg: silent about programs of 32 bits on a 64-bit kernel")
def test_byte_status_of_32_bits(ue: UserEvents) -> None:
    """The 20 bytes of a 32-bit build of the header are read with other offsets: EFAULT."""
    text = ue.process.place(ue.name().encode() + b"\0")
    assert ioctl_error(ue.open_data(), struct.pack("<IQII", 20, text, 0, 0)) == "EFAULT"
    assert ue.tracefs.status() == ""


@case(spec="user_reg_get", profiles="6.1..6.3")
@doc(f"{IN_6_1}: struct user_reg: packed; size, name_args, status_bit, write_index")
@variants(
    ("size-0", 0, b"\x13", "EINVAL"),
    ("size-1", 1, b"\x10", "E2BIG"),
    ("size-2", 2, b"\x01", "E2BIG"),
    ("size-3", 3, b"\x01", "E2BIG"),
    ("name_args-4", 4, bytes(8), "EFAULT"),
    ("name_args-11", 11, b"\xff", "EFAULT"),
    ("outputs-12", 12, b"\xff" * 8, ""),
)
def test_bit_status_reads_at(ue: UserEvents, offset: int, content: bytes, errno: str) -> None:
    """Since 6.1 size is at 0 and name_args at 4; the other bytes of user_reg are ignored."""
    raw = overlay(reg_of(ue, ue.name()), offset, content)
    assert ioctl_error(ue.open_data(), raw) == errno


@case(spec="user_reg_get", level="behaviour", profiles="6.1..6.3")
@doc("include/linux/user_events.h@v6.1: struct user_reg: size is that of the structure being used;")
@doc("silent about smaller ones")
@variants((20, ""), (19, "EFAULT"), (12, "EFAULT"), (4, "EFAULT"), (3, "EFAULT"))
def test_bit_status_minimum(ue: UserEvents, present: int, errno: str) -> None:
    """Since 6.1 the kernel reads exactly 20 bytes, write_index included."""
    raw = reg_of(ue, ue.name())
    assert ioctl_error(ue.open_data(), raw[:present]) == errno


@case(profiles="6.1..6.3", isolation="global")
@doc(f"{IN_6_1}: struct user_reg: two outputs after name_args, status_bit and write_index")
def test_bit_status_writes_at(ue: UserEvents) -> None:
    """Since 6.1 status_bit is stored at 12 and write_index at 16; nothing else is written."""
    raw, after = register_third(ue)
    assert after[:20] == b"\xdd" * 8 + raw[:12]
    assert after[20:] == b"\3\0\0\0" + b"\1\0\0\0" + b"\xdd" * 8


@case(spec="user_events_ioctl", profiles="5.18..6.3")
@doc(f"{IN_BOTH}: DIAG_IOCSREG and DIAG_IOCSDEL: type '*', numbers 0 and 1, each with a pointer")
def test_status_numbers(ue: UserEvents) -> None:
    """0xC0082A00 registers and 0x40082A01 deletes."""
    data = ue.open_data()
    assert ioctl_error(data, reg_of(ue, ue.name()), 0xC0082A00) == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"
    name = ue.name().encode() + b"\0"
    assert ioctl_error(data, name, 0x40082A01) == "EBUSY"
    data.close()
    other = ue.open_data()
    assert ioctl_error(other, name, 0x40082A01) == ""
    assert ioctl_error(other, name, 0x40082A01) == "ENOENT"


@case(spec="user_events_ioctl", level="behaviour", profiles="5.18..6.3")
@doc(f"{IN_BOTH}: DIAG_IOC_MAGIC: two requests; silent about others")
@variants(
    ("with-structure", IOCSUNREG, struct.pack("<IBBHQ", 16, 0, 0, 0, 0)),
    ("with-nothing", IOCSUNREG, b""),
    ("of-32-bits", 0x40042A02, b""),
    ("sign-extended", 0xFFFF_FFFF_0000_0000 | IOCSUNREG, b""),
)
def test_status_no_unregister(ue: UserEvents, number: int, raw: bytes) -> None:
    """There is no DIAG_IOCSUNREG: ENOTTY, and the event stays in use."""
    data = ue.event().data
    at = ue.process.place(raw) if raw else 0
    assert data.ioctl(number, at).errno == "ENOTTY"
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"


@case(spec="fs/ioctl.c:ioctl", level="detail", profiles="5.18..6.3", tier="full")
@doc(f"{IN_BOTH}: DIAG_IOCSREG: a request of 32 bits; silent about longer numbers")
def test_status_request_has_32_bits(ue: UserEvents) -> None:
    """A request is the low 32 bits: a sign-extended number registers, too."""
    raw = reg_of(ue, ue.name())
    assert ioctl_error(ue.open_data(), raw, 0xFFFF_FFFF_C008_2A00) == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()}\n"


@case(profiles="5.18..6.3")
@doc(f"{IN_BOTH}: struct user_reg: name_args is a 64-bit pointer to name, description and flags")
def test_status_name_args(ue: UserEvents) -> None:
    """The 8 bytes of name_args point to name and arguments."""
    assert ioctl_error(ue.open_data(), reg_of(ue, f"{ue.name('abc')} u16 x")) == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('abc')} u16 x\n"
