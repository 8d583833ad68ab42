"""Several enable words, bits and events: which of them change together."""

from conformance.cases.case import UserEvents, doc, surface
from conformance.cases.support.instances import create_instance
from conformance.client.caller import Word
from conformance.client.data_file import DataFile

DOC = "Status: the kernel updates the registered bit as tools attach and detach"
case = surface("enable", doc=DOC, level="behaviour", profiles="6.4..", tier="full")

MANY = 257


def many_words(ue: UserEvents, data: DataFile) -> int:
    """Register many words of one event, bit 3 of each; returns the address of the first."""
    words = ue.process.map()
    for number in range(MANY):
        word = Word(ue.process, words + 4 * number)
        assert data.register(ue.name(), bit=3, word=word).errno == ""
    return words


@case(spec="user_event_enabler_update", level="contract", tier="quick")
def test_two_bits_one_word(ue: UserEvents) -> None:
    """One event may have several bits of one word: they change together."""
    data = ue.open_data()
    word = ue.process.word(value=0x100)
    data.register(ue.name(), bit=0, word=word)
    data.register(ue.name(), bit=31, word=word)
    ue.tracefs.enable(ue.name())
    assert word.value == 0x80000101
    ue.tracefs.disable(ue.name())
    assert word.value == 0x100


@case(spec="update_enable_bit_for, user_event_enabler_update", tier="quick")
@doc("Status: the kernel updates the bit as tools attach; silent about bits that programs change")
def test_restored_by_another_listener(ue: UserEvents) -> None:
    """A bit that its program cleared is set again when another tool attaches or detaches."""
    event, instance = ue.event(), create_instance(ue)
    event.enable()
    ue.process.store(event.word.address, bytes(4))
    instance.enable(ue.name())
    assert event.word.value == 1
    ue.process.store(event.word.address, bytes(4))
    instance.disable(ue.name())
    assert event.word.value == 1


@case(spec="user_event_enabler_update")
@doc("Unregistering: ends updates of the bit; silent about its last value")
def test_two_words_one_event(ue: UserEvents) -> None:
    """One event may have several words, of both sizes: they change together."""
    data = ue.open_data()
    first, second, third = ue.process.word(), ue.process.word(8), ue.process.word(offset=4)
    data.register(ue.name(), bit=0, word=first)
    data.register(ue.name(), bit=33, word=second)
    data.register(ue.name(), bit=2, word=third)
    ue.tracefs.enable(ue.name())
    assert (first.value, second.value, third.value) == (1, 0x200000000, 4)
    data.unregister(second, bit=33)
    assert (first.value, second.value, third.value) == (1, 0, 4)
    ue.tracefs.disable(ue.name())
    assert (first.value, second.value, third.value) == (0, 0, 0)


@case(spec="user_event_enabler_update", level="contract")
def test_one_word_two_events(ue: UserEvents) -> None:
    """Two events may share a word if their bits differ: each changes only its own bit."""
    data, word = ue.open_data(), ue.process.word()
    data.register(ue.name("a"), bit=0, word=word)
    data.register(ue.name("b"), bit=1, word=word)
    ue.tracefs.enable(ue.name("b"))
    assert word.value == 2
    ue.tracefs.enable(ue.name("a"))
    assert word.value == 3
    ue.tracefs.disable(ue.name("b"))
    assert word.value == 1
    ue.tracefs.disable(ue.name("a"))
    assert word.value == 0


@case(spec="user_event_enabler_exists compares address and bit", tier="quick")
@doc("Registering: enable_size is that of the value; silent about two sizes at one address")
def test_two_sizes_one_address(ue: UserEvents) -> None:
    """An address may be a 4-byte word of one event and an 8-byte word of another."""
    data = ue.open_data()
    long = ue.process.word(8)
    short = ue.process.word_at(long.address, 4, value=None)
    data.register(ue.name("a"), bit=3, word=short)
    assert data.register(ue.name("b"), bit=35, word=long).value == 0
    ue.tracefs.enable(ue.name("b"))
    assert long.value == 0x800000000
    ue.tracefs.enable(ue.name("a"))
    assert long.value == 0x800000008


@case(spec="user_event_enabler_update; user_event_enabler_exists")
@doc("Registering: silent about a word used twice and about how many there may be")
def test_many_words(ue: UserEvents) -> None:
    """One event may have 257 words: all are followed and all can be unregistered."""
    data = ue.open_data()
    words = many_words(ue, data)
    ue.tracefs.enable(ue.name())
    assert ue.process.load(words, 4 * MANY).data == b"\x08\0\0\0" * MANY
    for number in (0, MANY - 1):
        word = Word(ue.process, words + 4 * number)
        assert data.register(ue.name("other"), bit=3, word=word).errno == "EADDRINUSE"
    ue.tracefs.disable(ue.name())
    assert ue.process.load(words, 4 * MANY).data == bytes(4 * MANY)


@case(spec="user_event_mm_dup", level="contract")
@doc("Unregistering: fork() retains registered events; each process unregisters its own")
def test_fork_of_many_words(ue: UserEvents) -> None:
    """A child inherits all 257 words of its parent."""
    words = many_words(ue, ue.open_data())
    child = ue.fork(ue.process)
    # With a page of its own on either side, updates are immediate.
    ue.process.store(words, bytes(4))
    child.store(words, bytes(4))
    ue.tracefs.enable(ue.name())
    assert ue.process.load(words, 4 * MANY).data == b"\x08\0\0\0" * MANY
    assert child.load(words, 4 * MANY).data == b"\x08\0\0\0" * MANY
