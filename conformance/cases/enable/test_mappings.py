"""Enable word in memory that is remapped, discarded, or backed by a file; and after fork."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.client.addresses import PAGE
from conformance.client.memory import discard, memory_file, move, move_to

SPEC = "user_event_enabler_fault_fixup"
DOC = "Status: the kernel updates the registered bit; silent about memory that changes"
FORKED = "Unregistering: fork() retains registered events; each process unregisters its own"
case = surface("enable", SPEC, DOC, level="behaviour", profiles="6.4..", tier="full")

READ_ONLY = 1


@case(tier="quick")
def test_moved(ue: UserEvents) -> None:
    """After mremap the kernel follows the registered address, which is unmapped, not the word."""
    data = ue.open_data()
    old = data.register(ue.name(), bit=3, word=ue.process.word_at(ue.process.map())).word
    new = ue.process.word_at(move(ue.process, old.address), value=None)
    assert ue.tracefs.enable(ue.name()).value == 2
    assert new.wait() == 0
    assert data.unregister(old, bit=3).errno == "EFAULT"
    assert data.unregister(new, bit=3).errno == "ENOENT"


@case(spec="user_event_enabler_write")
def test_moved_while_set(ue: UserEvents) -> None:
    """A bit set before mremap stays set at the new address for good."""
    old = ue.open_data().register(ue.name(), bit=3, word=ue.process.word_at(ue.process.map())).word
    ue.tracefs.enable(ue.name())
    new = ue.process.word_at(move(ue.process, old.address), value=None)
    ue.tracefs.disable(ue.name())
    assert new.wait() == 8
    assert (ue.open_data().register(ue.name(), bit=3, word=new).errno, new.value) == ("", 0)


@case(spec="user_event_enabler_write")
def test_moved_here(ue: UserEvents) -> None:
    """Memory that mremap places at a registered address is updated; its other bits are kept."""
    word = ue.open_data().register(ue.name(), bit=0, word=ue.process.word_at(ue.process.map())).word
    other = ue.process.map()
    ue.process.store(other, b"\xf0\0\0\x80")
    ue.process.unmap(word.address)
    move_to(ue.process, other, word.address)
    ue.tracefs.enable(ue.name())
    assert word.value == 0x800000F1
    ue.tracefs.disable(ue.name())
    assert word.value == 0x800000F0


@case
@variants(("private", False, 0), ("shared", True, 16))
def test_discarded(ue: UserEvents, shared: bool, seen: int) -> None:
    """MADV_DONTNEED loses a bit in private memory until the next change; shared memory keeps it."""
    page = ue.process.map(shared=shared)
    word = ue.open_data().register(ue.name(), bit=4, word=ue.process.word_at(page)).word
    ue.tracefs.enable(ue.name())
    discard(ue.process, page)
    assert word.value == seen
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert word.wait() == 16


@case
def test_discarded_often(ue: UserEvents) -> None:
    """Each change faults the discarded page in again, a dozen times in a row."""
    page = ue.process.map()
    word = ue.open_data().register(ue.name(), bit=4, word=ue.process.word_at(page)).word
    for _ in range(12):
        discard(ue.process, page)
        ue.tracefs.enable(ue.name())
        assert word.wait() == 16
        ue.tracefs.disable(ue.name())
        assert word.value == 0


@case(spec="user_event_enabler_update: each word has attempts of its own", tier="quick")
def test_discarded_behind_others(ue: UserEvents) -> None:
    """A word in a discarded page is faulted in, however many words precede it."""
    process, data = ue.process, ue.open_data()
    page = process.map()
    oldest = data.register(ue.name(), bit=4, word=process.word_at(page)).word
    # The kernel updates the newest enabler first, and faults a page in ten times at most.
    others = [data.register(ue.name(), bit=bit, word=process.word()).word for bit in range(12)]
    discard(process, page)
    ue.tracefs.enable(ue.name())
    assert [word.value for word in others] == [1 << bit for bit in range(12)]
    assert oldest.wait() == 16


@case(spec="user_events_ioctl_unreg", doc="Unregistering: silent about memory that went away")
def test_discarded_then_unregistered(ue: UserEvents) -> None:
    """A word in a discarded page can be unregistered: the page is faulted in."""
    data, page = ue.open_data(), ue.process.map()
    word = data.register(ue.name(), bit=4, word=ue.process.word_at(page)).word
    ue.tracefs.enable(ue.name())
    discard(ue.process, page)
    assert data.unregister(word, bit=4).value == 0
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert word.wait() == 0


@case(spec="user_event_enabler_write", tier="quick")
@doc("Status: the kernel updates the registered bit; silent about two words in the same memory")
@variants({"disabled": "disable", "unregistered": "unregister", "gone": "exit"})
def test_file_of_two(ue: UserEvents, first: str) -> None:
    """Two processes register one bit of a shared file, each at its own address."""
    parent = ue.process
    file = memory_file(parent)
    child = ue.fork(parent)
    mine = parent.word_at(file.map(), value=None)
    its = child.word_at(file.of(child).map(child.reserve(7)), value=None)
    one = parent.open_data().register(ue.name(), bit=6, word=mine)
    data = child.open_data()
    two = data.register(ue.name(), bit=6, word=its)
    assert (one.errno, two.errno) == ("", "")
    ue.tracefs.enable(ue.name())
    assert (mine.value, its.value) == (64, 64)
    left = 64
    if first == "disable":
        ue.tracefs.disable(ue.name())
        left = 0
    elif first == "unregister":
        data.unregister(its, bit=6)
        left = 0
    else:
        child.exit()
    assert mine.value == left
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert mine.value == 64


@case(spec="user_event_enabler_write")
@doc("Status: the kernel updates the registered bit; silent about two words in the same memory")
def test_file_of_two_events(ue: UserEvents) -> None:
    """Two processes register one bit of shared memory for two events: the last change wins."""
    parent = ue.process
    file = memory_file(parent)
    word = parent.word_at(file.map(), value=None)
    child = ue.fork(parent)
    copy = child.word_at(word.address, value=None)
    parent.open_data().register(ue.name("a"), bit=0, word=word)
    child.open_data().register(ue.name("b"), bit=0, word=copy)
    ue.enable("a", "b")
    assert word.value == 1
    ue.tracefs.disable(ue.name("a"))
    assert (word.value, copy.value) == (0, 0)


@case(spec="user_event_enabler_exists")
@doc("Status: the kernel updates the registered bit; silent about two words in the same memory")
def test_file_mapped_twice(ue: UserEvents) -> None:
    """A word mapped at two addresses is two words: each can be registered and unregistered."""
    file = memory_file(ue.process)
    one = ue.process.word_at(file.map(), value=None)
    two = ue.process.word_at(file.map(), value=None)
    data = ue.open_data()
    assert data.register(ue.name(), bit=1, word=one).errno == ""
    assert data.register(ue.name("b"), bit=1, word=two).errno == ""
    ue.tracefs.enable(ue.name("b"))
    assert (one.value, two.value) == (2, 2)
    assert data.unregister(one, bit=1).value == 0
    assert two.value == 0


@case(doc="Status: the kernel updates the registered bit; silent about mapped files")
def test_file_private(ue: UserEvents) -> None:
    """A word in a private file mapping is copied on write: the file does not change."""
    file = memory_file(ue.process)
    shared = ue.process.word_at(file.map(), value=0x70)
    own = ue.process.word_at(file.map(shared=False), value=None)
    word = ue.open_data().register(ue.name(), bit=0, word=own).word
    ue.tracefs.enable(ue.name())
    assert (word.value, shared.value) == (0x71, 0x70)


@case(spec="user_event_mm_fault_in", bug="enomem-for-bad-address")
@doc("Registering: enable_addr must be write accessible; silent about the error")
@variants({"shared": True, "private": False})
def test_file_end(ue: UserEvents, shared: bool) -> None:
    """Registering a word past the end of its file is EFAULT; one in the last bytes is followed."""
    page = memory_file(ue.process).map(pages=2, shared=shared)
    data = ue.open_data()
    errno = ue.bug("enomem-for-bad-address", fixed="EFAULT", present="ENOMEM")
    assert data.register(ue.name(), enable_addr=page + PAGE).errno == errno
    last = ue.process.word_at(page + PAGE - 4, value=None)
    assert data.register(ue.name(), bit=31, word=last).index == 0
    ue.tracefs.enable(ue.name())
    assert last.value == 0x80000000


@case
@variants({"shared": True, "private": False})
def test_file_cut(ue: UserEvents, shared: bool) -> None:
    """A change while the file is too short is lost; the next one after it has grown is seen."""
    file = memory_file(ue.process)
    word = ue.process.word_at(file.map(shared=shared), value=None)
    ue.open_data().register(ue.name(), bit=2, word=word)
    file.truncate(0)
    assert ue.tracefs.enable(ue.name()).value == 2
    assert ue.process.load(word.address, 4).errno == "EFAULT"
    ue.tracefs.disable(ue.name())
    file.truncate(1)
    assert word.value == 0
    ue.tracefs.enable(ue.name())
    assert word.wait() == 4


@case
@variants(("shared", True, b"\x41\0\0\0"), ("private", False, b"\x40\0\0\0"))
def test_address_reused_by_file(ue: UserEvents, shared: bool, seen: bytes) -> None:
    """A shared file mapping placed over a registered word is updated by the next change."""
    file = memory_file(ue.process)
    elsewhere = file.map()
    ue.process.store(elsewhere, b"\x40\0\0\0")
    word = ue.open_data().register(ue.name(), word=ue.process.word_at(ue.process.map())).word
    ue.process.unmap(word.address)
    file.map(word.address, shared=shared)
    ue.tracefs.enable(ue.name())
    assert word.wait() == 0x41
    assert ue.process.load(elsewhere, 4).data == seen


@case
def test_address_reused_shared(ue: UserEvents) -> None:
    """Shared memory mapped over a registered word is updated for all processes that map it."""
    word = ue.open_data().register(ue.name(), word=ue.process.word_at(ue.process.map())).word
    ue.process.unmap(word.address)
    ue.process.map_again(word.address, shared=True)
    copy = ue.fork(ue.process).word_at(word.address, value=0x40)
    ue.tracefs.enable(ue.name())
    assert word.wait() == 0x41
    assert copy.value == 0x41


@case
def test_address_reused_read_only(ue: UserEvents) -> None:
    """A read-only file mapping placed over a registered word is not written."""
    file = memory_file(ue.process)
    word = ue.open_data().register(ue.name(), word=ue.process.word_at(ue.process.map())).word
    ue.process.unmap(word.address)
    file.map(word.address, protection=READ_ONLY)
    assert ue.tracefs.enable(ue.name()).value == 2
    assert word.wait() == 0
    ue.tracefs.disable(ue.name())
    ue.process.unmap(word.address)
    file.map(word.address)
    ue.tracefs.enable(ue.name())
    assert word.wait() == 1


@case(doc=FORKED, level="contract")
@variants("parent", "child")
def test_fork_one_touched(ue: UserEvents, touches: str) -> None:
    """After fork the side that has written its page is updated at once, the other one soon."""
    event = ue.event(bit=3)
    child = ue.fork(ue.process)
    copy = child.word_at(event.word.address, value=None)
    mine, other = (event.word, copy) if touches == "parent" else (copy, event.word)
    (ue.process if touches == "parent" else child).store(mine.address, b"\x01\0\0\0")
    event.enable()
    assert mine.value == 9
    assert other.wait() == 8


@case(spec="user_event_enabler_write: without a look at rights")
@doc("Status: the kernel updates the registered bit; silent about the rights of the program")
@variants({"touched": True, "after_fork": False})
def test_rights_given_up(ue: UserEvents, touched: bool) -> None:
    """The word of a non-dumpable process that dropped its privileges is updated."""
    event = ue.event(bit=3)
    ue.process.setuid(1000)
    if not touched:
        ue.fork(ue.process)
    event.enable()
    assert event.word.wait() == 8


@case
def test_fork_unmapped(ue: UserEvents) -> None:
    """A child that unmaps its copy of the word does not affect its parent."""
    page = ue.process.map()
    word = ue.open_data().register(ue.name(), bit=3, word=ue.process.word_at(page)).word
    child = ue.fork(ue.process)
    child.unmap(page)
    ue.tracefs.enable(ue.name())
    assert word.wait() == 8
    child.map_again(page)
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert child.word_at(page, value=None).wait() == 8


@case(spec="align_addr_bit", doc=FORKED, level="contract", tier="quick")
@variants((31, 0x80000000), (0, 1))
def test_fork_at_4_mod_8(ue: UserEvents, bit: int, seen: int) -> None:
    """In parent and child, a word in the upper half of an 8-byte unit is followed."""
    word = ue.open_data().register(ue.name(), bit=bit, word=ue.process.word(offset=4)).word
    copy = ue.fork(ue.process).word_at(word.address, value=None)
    ue.tracefs.enable(ue.name())
    assert (word.wait(), copy.wait()) == (seen, seen)
    ue.tracefs.disable(ue.name())
    assert (word.value, copy.value) == (0, 0)


@case(spec="user_event_enabler_exists", tier="quick", switch="overlapping-words")
@doc("Status: the kernel updates the registered bit; silent about two words in the same memory")
@variants((32, 0), (63, 31))
def test_overlapping_words(ue: UserEvents, bit_of_8: int, bit_of_4: int) -> None:
    """A bit registered through an 8-byte word is in use for a 4-byte word: EADDRINUSE."""
    data = ue.open_data()
    long = ue.process.word(8)
    half = ue.process.word_at(long.address + 4, value=None)
    assert data.register(ue.name("a"), bit=bit_of_8, word=long).errno == ""
    errno = ue.bug("overlapping-words", fixed="EADDRINUSE", present="")
    assert data.register(ue.name("b"), bit=bit_of_4, word=half).errno == errno
    ue.tracefs.enable(ue.name("a"))
    assert half.value == 1 << bit_of_4
    if not errno:
        # Each event overwrites the bit of the other one.
        ue.tracefs.enable(ue.name("b"))
        ue.tracefs.disable(ue.name("a"))
        assert long.value == 0
        assert data.unregister(half, bit=bit_of_4).value == 0
    assert data.unregister(long, bit=bit_of_8).value == 0
