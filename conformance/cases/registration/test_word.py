"""DIAG_IOCSREG: which enable words are accepted."""

import mmap

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.registration import error_of
from conformance.client.addresses import PROT_NONE
from conformance.client.caller import Word

SPEC = "user_events_ioctl_reg"
DOC = "Registering: enable_addr must be write accessible within the program"
FAILURE = "Registering: enable_addr must be write accessible; silent about what a failure leaves"
WRITABLE = "Registering: enable_addr must be write accessible; silent about the error"
case = surface("registration", SPEC, DOC, level="behaviour", profiles="6.4..")


@case(spec="user_reg_get", level="contract")
@doc("Registering: enable_size must be 4 or, on 64-bit kernels, 8")
@variants(
    {str(n): (n, "" if n in (4, 8) else "EINVAL") for n in (0, 1, 2, 3, 4, 5, 8, 12, 16, 132)}
)
def test_enable_size(ue: UserEvents, size: int, errno: str) -> None:
    """A word has 4 or 8 bytes; any other size is EINVAL."""
    page = ue.process.map()
    # A multiple of all the sizes: nothing else is wrong.
    word = ue.process.word_at(page + -page % 2640, 8)
    assert ue.open_data().register(ue.name(), word=word, enable_size=size).errno == errno


@case(spec="user_reg_get", level="contract")
@doc("Registering: enable_addr must be naturally aligned and write accessible")
@variants(
    ("u32-2", 4, 2, "EINVAL"),
    ("u64-4", 8, 4, "EINVAL"),
    ("u32-1", 4, 1, "EINVAL"),
    ("u32-3", 4, 3, "EINVAL"),
    ("u32-4", 4, 4, ""),
    ("u64-1", 8, 1, "EINVAL"),
    ("u64-8", 8, 8, ""),
    quick=2,
)
def test_misaligned(ue: UserEvents, size: int, offset: int, errno: str) -> None:
    """The address of a word is a multiple of its size; else EINVAL."""
    word = ue.process.word(size, offset=offset)
    assert ue.open_data().register(ue.name(), word=word).errno == errno


@case(spec="user_reg_get", level="contract")
@doc("Registering: enable_bit is a bit of the value that has enable_size bytes")
@variants(
    ("u32-32", 4, 32, "EINVAL"),
    ("u64-63", 8, 63, ""),
    ("u64-64", 8, 64, "EINVAL"),
    ("u32-31", 4, 31, ""),
    ("u32-255", 4, 255, "EINVAL"),
    ("u64-255", 8, 255, "EINVAL"),
    quick=3,
)
def test_bit_range(ue: UserEvents, size: int, bit: int, errno: str) -> None:
    """The bit must lie within the word; else EINVAL."""
    word = ue.process.word(size)
    assert ue.open_data().register(ue.name(), word=word, bit=bit).errno == errno


@case(spec="user_reg_get", level="contract")
@variants(
    ("first", 0x8000_0000_0000_0000),
    ("direct-map", 0xFFFF_8880_0000_0000),
    ("last", 0xFFFF_FFFF_FFFF_FFFC),
)
def test_kernel_address(ue: UserEvents, address: int) -> None:
    """A word at a kernel address is EFAULT and creates nothing."""
    assert error_of(ue.open_data().register(ue.name(), enable_addr=address)) == "EFAULT"
    assert ue.tracefs.status() == ""


@case(doc="Registering: silent about a word used twice")
@variants(("other-size", "e", 8), ("same-event", "e", 4), ("other-event", "f", 4))
def test_word_taken(ue: UserEvents, definition: str, size: int) -> None:
    """An address and bit of a process can be registered once: the next is EADDRINUSE."""
    data = ue.open_data()
    word = ue.process.word(8)
    data.register(ue.name(), word=word, bit=1, enable_size=4)
    again = data.register(ue.name(definition), word=word, bit=1, enable_size=size)
    assert error_of(again) == "EADDRINUSE"
    assert ue.tracefs.status() == f"{ue.name()}\n"


@case(spec="user_event_enabler_exists; user_events_ioctl_unreg", level="contract")
@doc("Status: the kernel updates the registered bit as tools attach and detach")
def test_words_far_apart(ue: UserEvents) -> None:
    """All bits of an address are compared: words 4 GiB apart are two."""
    data = ue.open_data()
    near = ue.process.map()
    assert ue.process.map_again(near + 0x1_0000_0000).errno == ""
    words = [ue.process.word_at(near + distance) for distance in (0, 0x1_0000_0000)]
    for word in words:
        assert data.register(ue.name(), bit=3, word=word).errno == ""
    ue.tracefs.enable(ue.name())
    assert [word.value for word in words] == [8, 8]
    assert data.unregister(words[1], bit=3).errno == ""
    assert [word.value for word in words] == [8, 0]
    assert data.unregister(words[0], bit=3).errno == ""


@case(doc="Registering: silent about a word used twice")
def test_word_taken_by_descriptor(ue: UserEvents) -> None:
    """The descriptor does not matter: another one of the process gets EADDRINUSE as well."""
    word = ue.event().word
    assert error_of(ue.open_data().register(ue.name("f"), word=word)) == "EADDRINUSE"


@case(spec="user_event_mm_dup", tier="full")
@doc("Unregistering: fork() retains registered events; silent about a word used twice")
def test_word_taken_after_fork(ue: UserEvents) -> None:
    """A forked child inherits the word: EADDRINUSE there, until it unregisters."""
    event, child = ue.event(), ue.fork(ue.process)
    copy = event.data.of(child)
    there = Word(child, event.word.address)
    assert error_of(copy.register(ue.name("f"), word=there)) == "EADDRINUSE"
    assert copy.unregister(there).value == 0
    assert copy.register(ue.name("f"), word=there).errno == ""


@case(doc="Registering: silent about a word used twice", profiles="5.18..", tier="full")
def test_word_free_again(ue: UserEvents) -> None:
    """Other bits, other addresses, other processes and unregistered words can be registered."""
    data = ue.open_data()
    word = ue.process.word(8)
    data.register(ue.name(), word=word)
    assert data.register(ue.name(), word=word, bit=1).errno == ""
    assert data.register(ue.name(), enable_addr=word.address + 4, enable_size=4).errno == ""
    other = ue.new_process()
    there = other.word_at(word.address)
    assert other.open_data().register(ue.name(), word=there).errno == ""
    data.unregister(word)
    assert data.register(ue.name("f"), word=word).errno == ""


@case(doc=WRITABLE, bug="enomem-for-bad-address")
@variants(("read-only", mmap.PROT_READ), ("no-access", PROT_NONE), ("unmapped", None))
def test_word_unwritable(ue: UserEvents, protection: int | None) -> None:
    """A word that cannot be written is EFAULT."""
    address = ue.process.map()
    if protection is None:
        ue.process.unmap(address)
    else:
        ue.process.protect(address, protection)
    errno = ue.bug("enomem-for-bad-address", fixed="EFAULT", present="ENOMEM")
    assert error_of(ue.open_data().register(ue.name(), enable_addr=address)) == errno


@case(doc=WRITABLE, switch="enomem-for-bad-address")
@variants({"u32": 4, "u64": 8})
def test_word_null(ue: UserEvents, size: int) -> None:
    """A word is required: address zero is EFAULT."""
    seen = ue.open_data().register(ue.name(), enable_addr=0, enable_size=size)
    assert error_of(seen) == ue.bug("enomem-for-bad-address", fixed="EFAULT", present="ENOMEM")


@case(doc=FAILURE, level="detail", tier="full", bug="enomem-for-bad-address")
def test_word_unwritable_leaves_event(ue: UserEvents) -> None:
    """After a bad address the event exists and keeps its write index, which a retry returns."""
    data = ue.open_data()
    errno = ue.bug("enomem-for-bad-address", fixed="EFAULT", present="ENOMEM")
    assert error_of(data.register(f"{ue.name('a')} u32 x", enable_addr=0)) == errno
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('a')} u32 x\n"
    assert data.register(ue.name("b")).index == 1
    assert data.write_event(0, bytes(4)).errno == ue.dated(
        "ebadf_when_disabled", since="EBADF", before=""
    )
    assert data.delete(ue.name("a")).errno == "EBUSY"
    assert data.register(f"{ue.name('a')} u32 x").index == 0


@case(doc=FAILURE, level="detail", needs="auto_delete", tier="full")
def test_word_unwritable_event_goes(ue: UserEvents) -> None:
    """The event left by a bad address is deleted when the descriptor is closed."""
    data = ue.open_data()
    data.register(ue.name(), enable_addr=0)
    assert ue.tracefs.status() == f"{ue.name()}\n"
    data.close()
    assert ue.tracefs.status(eventually=True) == ""


@case(doc=FAILURE, tier="full")
def test_word_unwritable_is_not_followed(ue: UserEvents) -> None:
    """After a bad address the word is not registered: ENOENT, and the address can be registered."""
    data, address = ue.open_data(), ue.process.map()
    ue.process.protect(address, mmap.PROT_READ)
    data.register(ue.name(), enable_addr=address)
    ue.process.protect(address, mmap.PROT_READ | mmap.PROT_WRITE)
    assert data.unregister(address).errno == "ENOENT"
    assert data.register(ue.name(), enable_addr=address).errno == ""
