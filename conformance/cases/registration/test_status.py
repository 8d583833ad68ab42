"""DIAG_IOCSREG of 5.18 to 6.3: sizes of the structure, and results that cannot be stored."""

import mmap
import struct

from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.cases.support.registration import UNTOUCHED
from conformance.cases.support.status_page_registration import IOCSREG, UNANSWERED, overlay, reg_of
from conformance.client.addresses import PAGE

SPEC = "user_events_ioctl_reg: put_user"
DOC = (
    "@v5.19 and @v6.1: Registering: size is that of user_reg, for compatibility forward and "
    "backward"
)
SIZES = "Registering: size ensures compatibility; silent about other sizes"
OUTPUTS = "Registering: two outputs are set; silent about memory that cannot be written"
case = surface("registration", SPEC, DOC, level="detail", profiles="5.18..6.3")

# An address that fits into 3 bytes.
LOW = 0x10_0000
# Offset of status_index or status_bit in user_reg; write_index follows.
PLACE = {"byte-status": 16, "bit-status": 12}


@case(spec="user_reg_get", doc=SIZES, profiles="5.18..6.0")
@variants(
    (24, ""),
    (0, "EFAULT"),
    (4, "EFAULT"),
    (7, "EFAULT"),
    (8, "EFAULT"),
    (11, "EFAULT"),
    # Half of a pointer to 0x200000002000.
    (12, "EFAULT"),
    (13, "EFAULT"),
    # All bytes that are not zero.
    (14, ""),
    (16, ""),
    (20, ""),
    (23, ""),
    (25, ""),
)
def test_byte_status_size(ue: UserEvents, size: int, errno: str) -> None:
    """Until 6.0 no size is too small: the missing part of name_args reads as zero."""
    seen = ue.open_data().register(ue.name(), struct_size=size)
    assert (seen.errno, seen.index) == (errno, UNTOUCHED if errno else 0)


@case(doc=SIZES, profiles="5.18..6.0", isolation="global")
@spec("include/linux/uaccess.h:copy_struct_from_user")
@variants((12, ""), (11, ""), (10, "EFAULT"), (13, "EFAULT"), (16, "EFAULT"))
def test_byte_status_cut_pointer(ue: UserEvents, size: int, errno: str) -> None:
    """Until 6.0 a size may cut off a pointer; results are stored at their offsets regardless."""
    ue.process.map_again(LOW)
    ue.process.store(LOW, b"low\0")
    raw = struct.pack("<IIQ", size, 0, 0xFFFF_FFFF_0000_0000 | LOW) + UNANSWERED * 2
    at = ue.process.place(raw)
    assert ue.open_data().ioctl(IOCSREG, at).errno == errno
    answers = UNANSWERED * 2 if errno else b"\1\0\0\0" + b"\0\0\0\0"
    assert ue.process.load(at, 24).data == raw[:16] + answers
    assert ue.tracefs.dynamic_events(whole=True) == ("" if errno else "u:low\n")


@case(spec="user_reg_get", doc=SIZES, level="behaviour", profiles="6.1..6.3")
@variants(
    (19, "EINVAL"),
    (20, ""),
    (0, "EINVAL"),
    (4, "EINVAL"),
    (12, "EINVAL"),
    (16, "EINVAL"),
    (21, ""),
    # The size of the previous structure.
    (24, ""),
)
def test_bit_status_size(ue: UserEvents, size: int, errno: str) -> None:
    """Since 6.1 a structure of less than 20 bytes is EINVAL."""
    seen = ue.open_data().register(ue.name(), struct_size=size)
    assert (seen.errno, seen.index) == (errno, UNTOUCHED if errno else 0)


@case(spec="user_reg_get: copy_struct_from_user", doc=SIZES, level="behaviour")
@variants(
    ("nonzero-first", 32, 24, "E2BIG"),
    ("nonzero-behind", 32, 32, ""),
    ("nonzero-last", 32, 31, "E2BIG"),
    ("one-more-zero", 25, 25, ""),
    ("one-more-nonzero", 25, 24, "E2BIG"),
    ("page-zero", 4096, 4096, ""),
    ("page-nonzero-last", 4096, 4095, "E2BIG"),
    ("more-than-a-page", 4097, 4097, "E2BIG"),
    ("two-pages", 8192, 8192, "E2BIG"),
    ("huge", 0xFFFF_FFFF, 4097, "E2BIG"),
    ("negative", 0x8000_0000, 4097, "E2BIG"),
    quick=2,
)
def test_status_long_size(ue: UserEvents, size: int, nonzero: int, errno: str) -> None:
    """Bytes past the known members must be zero, and the size is a page at most: E2BIG."""
    known = {"byte-status": 24, "bit-status": 20}[ue.profile.generation]
    tail = bytes(nonzero - known) + b"\x80"
    seen = ue.open_data().register(ue.name(), struct_size=size, tail=tail)
    assert (seen.errno, seen.index) == (errno, UNTOUCHED if errno else 0)


@case(spec="lib/usercopy.c:check_zeroed_user", doc=SIZES, tier="full")
@variants(
    ("zero-before-the-fault", bytes(8), "EFAULT"),
    ("nonzero-before-the-fault", bytes(7) + b"\1", "E2BIG"),
    ("nothing-before-the-fault", b"", "EFAULT"),
)
def test_status_tail_unreadable(ue: UserEvents, tail: bytes, errno: str) -> None:
    """An unreadable byte past the known members is EFAULT, unless one before it is nonzero."""
    raw = overlay(reg_of(ue, ue.name()), 0, b"\x40") + tail
    assert ue.open_data().ioctl(IOCSREG, ue.process.place(raw)).errno == errno


@case(doc=OUTPUTS)
def test_status_read_only(ue: UserEvents) -> None:
    """A structure in read-only memory registers successfully; its results are lost."""
    data = ue.open_data()
    raw = reg_of(ue, ue.name())
    at = ue.process.place(raw)
    ue.process.protect(at - at % PAGE, mmap.PROT_READ)
    assert data.ioctl(IOCSREG, at).value == 0
    assert ue.process.load(at, len(raw)).data == raw
    again = data.register(ue.name())
    assert (again.errno, again.index) == ("", 0)
    assert data.register(ue.name("next")).index == 1


@case(doc=OUTPUTS, profiles="5.18..6.0", isolation="global")
@variants((20, b"\1\0\0\0"), (22, b"\1\0\0\0\xee\xee"), (16, b""), (18, b"\xee\xee"))
def test_status_beyond_the_end(ue: UserEvents, present: int, answers: bytes) -> None:
    """Until 6.0 a result past the end of the mapping is lost; the other one is stored."""
    raw = overlay(reg_of(ue, "e"), 0, bytes([present]))[:present]
    at = ue.process.place(raw)
    assert ue.open_data().ioctl(IOCSREG, at).value == 0
    seen = ue.process.load(at, present).data or b""
    assert (seen[16:], seen[:16]) == (answers, raw[:16])


@case(doc=OUTPUTS, isolation="global")
@variants(
    ("between-second", 4, True, b"\2\0\0\0", UNANSWERED),
    ("between-first", 4, False, UNANSWERED, b"\0\0\0\0"),
    # A number that crosses the border is stored as a whole or not at all.
    ("in-the-place-second", 2, True, UNANSWERED, UNANSWERED),
    ("in-the-place-first", 2, False, UNANSWERED, b"\0\0\0\0"),
    ("in-the-index-second", 6, True, b"\2\0\0\0", UNANSWERED),
    ("in-the-index-first", 6, False, UNANSWERED, UNANSWERED),
)
def test_status_half_read_only(
    ue: UserEvents, border: int, second: bool, place: bytes, index: bytes
) -> None:
    """If half of the structure is read-only, the results in the other half are stored."""
    ue.tracefs.command("u:a\n")
    raw = reg_of(ue, "b")
    start = PLACE[ue.profile.generation]
    pages = ue.process.map(2)
    at = pages + PAGE - start - border
    ue.process.store(at, raw)
    ue.process.protect(pages + PAGE if second else pages, mmap.PROT_READ)
    assert ue.open_data().ioctl(IOCSREG, at).value == 0
    assert ue.process.load(at + start, 8).data == place + index
