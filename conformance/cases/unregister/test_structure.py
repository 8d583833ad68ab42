"""DIAG_IOCSUNREG: the structure, its reserved members, and each pair of errors."""

import mmap

from conformance.abi.uapi import DIAG_IOCSUNREG, USER_UNREG
from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.error_pairs import pairs
from conformance.client.data_file import DataFile

BOTH = "user_unreg_get, user_events_ioctl_unreg"
TWO_ERRORS = "Unregistering: silent about which of two errors is reported"
case = surface("unregister", spec="user_unreg_get", level="behaviour", profiles="6.4..")


@case(tier="quick")
@doc("Unregistering: size must be that of struct user_unreg; silent about other sizes")
@variants(
    ("4096-zero", 4096, bytes(4080), ""),
    ("0", 0, b"", "EINVAL"),
    ("4", 4, b"", "EINVAL"),
    ("15", 15, b"", "EINVAL"),
    ("16", 16, b"", ""),
    ("16-not-looking-behind", 16, b"\x01", ""),
    ("17-zero", 17, b"\0", ""),
    ("17-nonzero", 17, b"\x01", "E2BIG"),
    ("4096-nonzero-at-the-end", 4096, bytes(4079) + b"\x01", "E2BIG"),
    ("4097-zero", 4097, bytes(4081), "E2BIG"),
    ("huge", 0xFFFF_FFFF, b"", "E2BIG"),
)
def test_size(ue: UserEvents, size: int, tail: bytes, errno: str) -> None:
    """The size is 16 bytes up to a page; bytes past the known members must be zero."""
    event = ue.event()
    assert event.data.unregister(event.word, struct_size=size, tail=tail).errno == errno
    assert event.data.register(ue.name(), word=event.word).errno == ("EADDRINUSE" if errno else "")


@case
@doc("Unregistering: takes a struct user_unreg; silent about memory that cannot be read")
@variants({"null": 0, "first-page": 0x300, "kernel-half": 0xFFFF_8880_0000_0000})
def test_struct_unreadable(ue: UserEvents, address: int) -> None:
    """A structure that cannot be read is EFAULT."""
    assert ue.event().data.ioctl(DIAG_IOCSUNREG, address).errno == "EFAULT"


@case(tier="full")
@doc("Unregistering: all members are inputs; silent about memory that cannot be written")
def test_struct_read_only(ue: UserEvents) -> None:
    """The structure is only read: it may lie in read-only memory."""
    event = ue.event()
    at = ue.process.map()
    ue.process.store(at, USER_UNREG.pack({"size": 16, "disable_addr": event.word.address}))
    ue.process.protect(at, mmap.PROT_READ)
    assert event.data.ioctl(DIAG_IOCSUNREG, at).value == 0


@case(level="contract")
@doc("Unregistering: the reserved members must be set to 0")
@variants(
    ("byte-1", 1, 0), ("short-1", 0, 1), ("byte-80", 0x80, 0), ("short-8000", 0, 0x8000), quick=2
)
def test_reserved(ue: UserEvents, reserved: int, reserved2: int) -> None:
    """A set bit in a reserved member is EINVAL, and the word stays registered."""
    event = ue.event()
    assert (
        event.data.unregister(event.word, reserved=reserved, reserved2=reserved2).errno == "EINVAL"
    )
    assert event.unregister().errno == ""


@case(doc=TWO_ERRORS, level="detail")
@variants(
    ("too-big-before-unreadable", 4097, 0, 4, "E2BIG"),
    ("too-small-before-unreadable", 15, 0, 4, "EINVAL"),
    ("too-big-before-reserved", 4097, 1, 16, "E2BIG"),
    ("reserved-before-unknown", 16, 1, 16, "EINVAL"),
    ("unreadable-before-unknown", 16, 0, 15, "EFAULT"),
)
def test_order(ue: UserEvents, size: int, reserved: int, present: int, errno: str) -> None:
    """Checks are made in this order: size, readability, reserved members, known word."""
    raw = USER_UNREG.pack({"size": size, "__reserved": reserved, "disable_addr": 0x1000})
    assert ue.open_data().ioctl(DIAG_IOCSUNREG, ue.process.place(raw[:present])).errno == errno


@case(doc=TWO_ERRORS, level="detail")
@variants(("too-small", 15, 0, "EINVAL"), ("reserved", 16, 1, "EINVAL"), ("valid", 16, 0, "ENOENT"))
def test_order_without_words(ue: UserEvents, size: int, reserved: int, errno: str) -> None:
    """A process that has never registered a word has its structure checked before ENOENT, too."""
    process = ue.new_process()
    data, word = process.open_data(), process.word()
    assert data.unregister(word, struct_size=size, reserved=reserved).errno == errno


@case(doc=TWO_ERRORS, level="detail")
def test_tail_before_unknown(ue: UserEvents) -> None:
    """Bytes that must be zero are checked before the word is looked up: E2BIG."""
    data, word = ue.open_data(), ue.process.word()
    assert data.unregister(word, struct_size=24, tail=bytes(7) + b"\x01").errno == "E2BIG"
    assert data.unregister(word, struct_size=24, tail=bytes(8)).errno == "ENOENT"


@case(doc=TWO_ERRORS, level="detail", switch="unreg-reserved-before-copy")
def test_cut_off_before_reserved(ue: UserEvents) -> None:
    """A structure that cannot be read whole is EFAULT, whatever its reserved members contain."""
    raw = USER_UNREG.pack({"size": 16, "__reserved": 1, "disable_addr": 0x1000})
    errno = ue.bug("unreg-reserved-before-copy", fixed="EFAULT", present="EINVAL")
    assert ue.open_data().ioctl(DIAG_IOCSUNREG, ue.process.place(raw[:15])).errno == errno


# In the order in which the kernel checks; with a known bug also the reserved members of a partial
# copy.
ORDER = (
    ("too-big", "E2BIG"),
    ("too-small", "EINVAL"),
    ("tail", "E2BIG"),
    ("reserved", "EINVAL"),
    ("cut-off", "EFAULT"),
    ("unknown", "ENOENT"),
    ("unwritable", "EFAULT"),
)
APART = (("too-small", "tail"), ("tail", "cut-off"))


def unregister(ue: UserEvents, data: DataFile, *errors: str) -> tuple[str, bool]:
    """Errno of an unregistration with the given errors, and whether the word was unregistered."""
    page = ue.process.map()
    ue.process.store(page, bytes(16))
    word = ue.process.word_at(page, value=None)
    data.register(ue.name(), word=word)
    size = 16
    if "too-big" in errors:
        size = 4097
    elif "too-small" in errors:
        size = 15
    elif "tail" in errors:
        size = 24
    members = {"size": size, "disable_addr": page + (4 if "unknown" in errors else 0)}
    raw = USER_UNREG.pack(members | ({"__reserved": 1} if "reserved" in errors else {}))
    if "cut-off" in errors:
        raw = raw[:-1]
    place = ue.process.place(raw + (bytes(7) + b"\1" if "tail" in errors else b""))
    if "unwritable" in errors:
        ue.process.unmap(page)
    errno = data.ioctl(DIAG_IOCSUNREG, place).errno
    return errno, data.unregister(word).errno == "ENOENT"


@case(spec=BOTH, doc=TWO_ERRORS, level="detail", bug="unreg-reserved-before-copy")
@variants(pairs(ORDER, APART))
def test_pairs(ue: UserEvents, first: str, second: str, errno: str) -> None:
    """If two checks fail, errno is that of the first, and the word stays registered."""
    if (first, second) == ("reserved", "cut-off"):
        errno = ue.bug("unreg-reserved-before-copy", fixed="EFAULT", present="EINVAL")
    assert unregister(ue, ue.open_data(), first, second) == (errno, False)


@case(spec=BOTH, doc="Unregistering: silent about memory that went away")
def test_unwritable_alone(ue: UserEvents) -> None:
    """An unwritable word is EFAULT only if all checks pass, and it is unregistered."""
    assert unregister(ue, ue.open_data(), "unwritable") == ("EFAULT", True)
