"""uapi header: the offsets that the kernel reads and writes, and the ioctl numbers it knows.

Structures are laid out by hand here: the literal is the byte offset.
"""

import os
import struct
from collections.abc import Mapping

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.caller import Word
from conformance.client.data_file import DataFile
from conformance.client.tracefs import STATUS

DOC = (
    "include/uapi/linux/user_events.h@v6.12: three ioctls of type '*', numbered 0 to 2, each "
    "taking a pointer"
)
MAGIC = "DIAG_IOC_MAGIC: three requests; silent about others"
case = surface("header", spec="user_event_validate", doc=DOC, level="contract", profiles="6.4..")

IOCSREG = 0xC0082A00
IOCSDEL = 0x40082A01
IOCSUNREG = 0x40082A02


def laid_out(size: int, members: Mapping[int, bytes]) -> bytes:
    """A structure from byte offset → bytes at that offset; zero elsewhere."""
    raw = bytearray(size)
    for offset, content in members.items():
        raw[offset : offset + len(content)] = content
    return bytes(raw)


def u64(number: int) -> bytes:
    """A 64-bit number in native byte order."""
    return struct.pack("<Q", number)


def reg_of(ue: UserEvents, word: Word, over: Mapping[int, bytes] | None = None) -> bytes:
    """A user_reg of 28 bytes that registers bit 0 of a word, with some bytes overwritten."""
    text = ue.process.place(ue.name().encode() + b"\0")
    right = {0: b"\x1c", 5: b"\x04", 8: u64(word.address), 16: u64(text)}
    return laid_out(28, {**right, **(over or {})})


def unreg_of(word: Word, over: Mapping[int, bytes] | None = None) -> bytes:
    """A user_unreg of 16 bytes for bit 0 of a word, with some bytes overwritten."""
    return laid_out(16, {0: b"\x10", 8: u64(word.address), **(over or {})})


def ioctl_errno(data: DataFile, request: int, raw: bytes) -> str:
    """Errno of an ioctl whose structure ends right before unmapped memory."""
    return data.ioctl(request, data.process.place(raw)).errno


@case(spec="user_reg_get")
@doc("struct user_reg: packed;")
@doc("size, enable_bit, enable_size, flags, enable_addr, name_args, write_index")
@variants(
    ("size-0", 0, b"\x1b", "EINVAL"),
    ("size-1", 1, b"\x10", "E2BIG"),
    ("size-2", 2, b"\x01", "E2BIG"),
    ("size-3", 3, b"\x01", "E2BIG"),
    ("enable_bit-4", 4, b"\x20", "EINVAL"),
    ("enable_size-5", 5, b"\x03", "EINVAL"),
    ("flags-6", 6, b"\x04", "EINVAL"),
    ("flags-7", 7, b"\x80", "EINVAL"),
    ("enable_addr-8", 8, b"\x01", "EINVAL"),
    ("enable_addr-15", 15, b"\xff", "EFAULT"),
    ("name_args-16", 16, bytes(8), "EFAULT"),
    ("name_args-23", 23, b"\xff", "EFAULT"),
)
def test_reg_reads_at(ue: UserEvents, offset: int, content: bytes, errno: str) -> None:
    """Each member of user_reg is checked at its offset."""
    data = ue.open_data()
    raw = reg_of(ue, ue.process.word(), {offset: content})
    assert ioctl_errno(data, IOCSREG, raw) == errno


@case(spec="user_reg_get", level="behaviour")
@doc("struct user_reg: 28 bytes, the last of them an output; silent about a part of it")
@variants((28, ""), (27, "EFAULT"), (24, "EFAULT"), (4, "EFAULT"), (3, "EFAULT"))
def test_reg_minimum(ue: UserEvents, present: int, errno: str) -> None:
    """The kernel reads exactly 28 bytes of user_reg, write_index included."""
    data = ue.open_data()
    raw = reg_of(ue, ue.process.word())
    assert ioctl_errno(data, IOCSREG, raw[:present]) == errno


@case(spec="user_events_ioctl_reg")
@doc("struct user_reg: packed; the only output is write_index, 4 bytes after name_args")
def test_write_index_at_24(ue: UserEvents) -> None:
    """The write index is stored in the 4 bytes at offset 24, and nothing else is written."""
    data = ue.event(name="first").data
    raw = reg_of(ue, ue.process.word(), {24: b"\xee\xee\xee\xee"})
    at = ue.process.map()
    ue.process.store(at, b"\xdd" * 8 + raw + b"\xdd" * 8)
    assert data.ioctl(IOCSREG, at + 8).value == 0
    after = ue.process.load(at, 44).data
    assert after == b"\xdd" * 8 + raw[:24] + b"\x01\x00\x00\x00" + b"\xdd" * 8


@case(spec="user_event_enabler_create")
@doc("struct user_reg: packed; size, enable_bit, enable_size, flags, enable_addr")
@variants(
    ("u32-bit0", b"\x00", b"\x04", 0x1),
    ("u32-bit31", b"\x1f", b"\x04", 0x8000_0000),
    ("u64-bit0", b"\x00", b"\x08", 0x1),
    ("u64-bit63", b"\x3f", b"\x08", 0x8000_0000_0000_0000),
)
def test_word_members(ue: UserEvents, bit: bytes, size: bytes, value: int) -> None:
    """Byte 4 is the bit, byte 5 the size and bytes 8 to 15 the address of the word."""
    data = ue.open_data()
    word = ue.process.word(8)
    assert ioctl_errno(data, IOCSREG, reg_of(ue, word, {4: bit, 5: size})) == ""
    ue.tracefs.enable(ue.name())
    assert word.value == value


@case(spec="user_events_ioctl_reg")
@doc("struct user_reg: packed; name_args, 8 bytes after enable_addr, points to the string")
def test_name_args_at_16(ue: UserEvents) -> None:
    """Bytes 16 to 23 point to the name and arguments."""
    data = ue.open_data()
    text = ue.process.place(ue.name("abc").encode() + b" u16 x\0")
    raw = reg_of(ue, ue.process.word(), {16: u64(text)})
    assert ioctl_errno(data, IOCSREG, raw) == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('abc')} u16 x\n"


@case(spec="user_event_parse", needs="persist", tier="full")
@doc("enum user_reg_flag: USER_EVENT_REG_PERSIST is bit 0:")
@doc("the last reference does not delete the event")
def test_flag_persist_is_1(ue: UserEvents) -> None:
    """Flag 1 in byte 6 makes the event persist after its last reference."""
    data, word = ue.open_data(), ue.process.word()
    assert ioctl_errno(data, IOCSREG, reg_of(ue, word, {6: b"\x01\x00"})) == ""
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == f"{ue.name()}\n"


@case(spec="find_user_event", needs="multi_format arguments_matched persist", tier="full")
@doc("enum user_reg_flag: USER_EVENT_REG_MULTI_FORMAT is bit 1: the event may have several formats")
def test_flag_multi_format_is_2(ue: UserEvents) -> None:
    """Flag 2 in byte 6 allows two formats for one name."""
    data = ue.open_data()
    for fields in (b" u32 a", b" u64 b"):
        text = ue.process.place(ue.name().encode() + fields + b"\0")
        raw = reg_of(ue, ue.process.word(), {6: b"\x02\x00", 16: u64(text)})
        assert ioctl_errno(data, IOCSREG, raw) == ""
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\nu:{ue.name()} u64 b\n"


@case(spec="user_unreg_get", tier="quick")
@doc("struct user_unreg: packed; size, disable_bit, two reserved members set to 0, disable_addr")
@variants(
    ("size-0", 0, b"\x0f", "EINVAL"),
    ("disable_addr-15", 15, b"\xff", "ENOENT"),
    ("size-1", 1, b"\x10", "E2BIG"),
    ("size-2", 2, b"\x01", "E2BIG"),
    ("size-3", 3, b"\x01", "E2BIG"),
    ("disable_bit-4", 4, b"\x01", "ENOENT"),
    ("reserved-5", 5, b"\x01", "EINVAL"),
    ("reserved2-6", 6, b"\x01", "EINVAL"),
    ("reserved2-7", 7, b"\x80", "EINVAL"),
    ("disable_addr-8", 8, b"\x01", "ENOENT"),
    quick=2,
)
def test_unreg_reads_at(ue: UserEvents, offset: int, content: bytes, errno: str) -> None:
    """Each member of user_unreg is checked at its offset."""
    event = ue.event()
    assert ioctl_errno(event.data, IOCSUNREG, unreg_of(event.word, {offset: content})) == errno


@case(spec="user_unreg_get", level="behaviour")
@doc("struct user_unreg: 16 bytes; silent about a part of it")
@variants((16, ""), (15, "EFAULT"), (8, "EFAULT"), (4, "EFAULT"), (3, "EFAULT"))
def test_unreg_minimum(ue: UserEvents, present: int, errno: str) -> None:
    """The kernel reads exactly 16 bytes of user_unreg."""
    event = ue.event()
    assert ioctl_errno(event.data, IOCSUNREG, unreg_of(event.word)[:present]) == errno


@case(spec="user_events_ioctl_unreg", level="behaviour", tier="full")
@doc("struct user_unreg: packed; size, disable_bit, reserved, disable_addr;")
@doc("silent about the last value of the bit")
def test_unreg_members(ue: UserEvents) -> None:
    """Byte 4 is the bit and bytes 8 to 15 the address that is unregistered."""
    data, word = ue.open_data(), ue.process.word()
    data.register(ue.name(), word=word, bit=6)
    data.register(ue.name(), word=word, bit=7)
    ue.tracefs.enable(ue.name())
    assert ioctl_errno(data, IOCSUNREG, unreg_of(word, {4: b"\x07"})) == ""
    assert word.value == 0x40


@case(spec="user_events_ioctl", tier="full")
@doc("DIAG_IOCSREG, DIAG_IOCSDEL and DIAG_IOCSUNREG: type '*', numbers 0 to 2, each with a pointer")
def test_ioctl_numbers(ue: UserEvents) -> None:
    """0xC0082A00 registers, 0x40082A02 unregisters and 0x40082A01 deletes."""
    data, word = ue.open_data(), ue.process.word()
    assert ioctl_errno(data, 0xC0082A00, reg_of(ue, word)) == ""
    assert ue.tracefs.status() == f"{ue.name()}\n"
    assert ioctl_errno(data, 0x40082A02, unreg_of(word)) == ""
    assert ioctl_errno(data, 0x40082A02, unreg_of(word)) == "ENOENT"
    assert ioctl_errno(data, 0x40082A01, ue.name().encode() + b"\0") == "EBUSY"


@case(spec="user_events_ioctl", level="behaviour", profiles="5.18..", tier="full")
@doc("DIAG_IOCSREG: with a pointer; silent about pointers of 32 bits on a 64-bit kernel")
@variants(("register", 0xC0042A00), ("delete", 0x40042A01), ("unregister", 0x40042A02))
def test_compat_numbers(ue: UserEvents, number: int) -> None:
    """The request numbers of a 32-bit build of the header are unknown: ENOTTY."""
    assert ioctl_errno(ue.open_data(), number, reg_of(ue, ue.process.word())) == "ENOTTY"
    assert ue.tracefs.status() == ""


@case(spec="user_events_ioctl", doc=MAGIC, level="behaviour", profiles="5.18..")
@variants(
    ("next-number", 0x40082A03),
    ("no-argument", 0x2A00),
    ("other-type", 0xC0082B00),
    ("read-only-direction", 0x80082A00),
    ("write-only-direction", 0x40082A00),
    ("size-of-user_reg", 0xC01C2A00),
    ("offset-of-the-first-proposal", 0x2A02),
    ("zero", 0),
    quick=2,
)
def test_unknown_ioctl(ue: UserEvents, number: int) -> None:
    """Any other request is ENOTTY, even if only its direction or size differs."""
    assert ioctl_errno(ue.open_data(), number, reg_of(ue, ue.process.word())) == "ENOTTY"
    assert ue.tracefs.dynamic_events() == ""


@case(spec="user_events_ioctl", doc=MAGIC, level="detail", profiles="5.18..")
def test_unknown_before_argument(ue: UserEvents) -> None:
    """An unknown request is ENOTTY before its argument is read."""
    assert ue.open_data().ioctl(0x40082A03, 0).errno == "ENOTTY"


@case(spec="fs/ioctl.c:ioctl", level="detail", tier="full")
@doc("DIAG_IOCSREG: a request of 32 bits; silent about longer numbers")
def test_request_has_32_bits(ue: UserEvents) -> None:
    """A request is the low 32 bits: a sign-extended number registers, too."""
    data = ue.open_data()
    at = ue.process.place(reg_of(ue, ue.process.word(), {24: b"\xee\xee\xee\xee"}))
    assert data.ioctl(0xFFFF_FFFF_C008_2A00, at).value == 0
    assert ue.process.load(at + 24, 4).data == b"\x00\x00\x00\x00"


@case(spec="user_status_fops", level="behaviour", profiles="5.18..")
@doc("DIAG_IOC_MAGIC: three requests; silent about the file")
@variants({"register": IOCSREG, "delete": IOCSDEL, "unregister": IOCSUNREG})
def test_status_has_no_ioctl(ue: UserEvents, number: int) -> None:
    """user_events_status supports none of the ioctls: ENOTTY."""
    _, slot = ue.process.open(STATUS, os.O_RDONLY)
    status = DataFile(ue.process, slot)
    assert ioctl_errno(status, number, reg_of(ue, ue.process.word())) == "ENOTTY"


@case(doc="DYN_LOC(offset, size): size << 16 | offset", profiles="5.18..", tier="full")
@variants(
    ("rel_loc", "__rel_loc", b"\x02\x00\x06\x00", b"??"),
    ("data_loc", "__data_loc", b"\x0f\x00\x06\x00", b"???"),
)
def test_dyn_loc(ue: UserEvents, location: str, word: bytes, padding: bytes) -> None:
    """The low half of a dynamic location is the offset of the data, the high half the size."""
    data = ue.event(f"{location} char[] text", enabled=True).data
    payload = word + padding + b"hello\0"
    assert data.write_event(0, payload).value == 4 + len(payload)
    assert ue.tracefs.records() == [ue.line("text=hello", dump=payload.hex(" "))]


@case(level="behaviour", profiles="5.18..")
@doc("DYN_LOC(offset, size): size << 16 | offset; silent about checks")
@variants(
    ("size-4", b"\x00\x00\x04\x00", ""),
    ("size-5", b"\x00\x00\x05\x00", "EFAULT"),
    ("offset-5", b"\x05\x00\x00\x00", "EFAULT"),
    ("offset-1-size-4", b"\x01\x00\x04\x00", "EFAULT"),
    ("size-256", b"\x00\x00\x00\x01", "EFAULT"),
    ("offset-256", b"\x00\x01\x00\x00", "EFAULT"),
)
def test_dyn_loc_beyond_the_end(ue: UserEvents, word: bytes, errno: str) -> None:
    """Offset plus size may reach the end of the four bytes of data, but not beyond."""
    written = ue.event("__rel_loc char[] text", enabled=True).write(word + b"abc\0")
    assert written.errno == ue.dated("dynamic_fields_validated", since=errno, before="")
