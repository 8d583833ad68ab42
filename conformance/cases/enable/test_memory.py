"""Enable word in several processes, after fork, and in memory that changes."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants

SPEC = "user_events_ioctl_unreg: current->user_event_mm"
DOC = "Unregistering: fork() retains registered events; each process unregisters its own"
CHANGES = "Status: the kernel updates the registered bit; silent about memory that changes"
case = surface("enable", SPEC, DOC, level="contract", profiles="6.4..", tier="full")

READ_ONLY, READ_WRITE = 1, 3


@case(spec="user_event_mm_get_all")
@doc("Status: the kernel updates the registered bit as tools attach and detach")
def test_several_processes(ue: UserEvents) -> None:
    """Each process that registered an event has its own word and bit updated."""
    first, second, third = ue.process, ue.new_process(), ue.new_process()
    one = first.open_data().register(ue.name(), bit=0).word
    two = second.open_data().register(ue.name(), bit=1, word=second.word(8)).word
    other = third.open_data().register(ue.name("other"), bit=2).word
    ue.tracefs.enable(ue.name())
    assert (one.value, two.value, other.value) == (1, 2, 0)
    second.exit()
    ue.tracefs.disable(ue.name())
    assert (one.value, other.value) == (0, 0)


@case(spec="user_event_reg holds a reference")
@doc("Registering: enable_bit reflects the status of the event at enable_addr")
def test_outlives_the_process(ue: UserEvents) -> None:
    """If an event is already enabled, registering it in another process sets the bit there."""
    first = ue.new_process()
    first.open_data().register(ue.name())
    ue.tracefs.enable(ue.name())
    first.exit()
    assert ue.event(bit=6).word.value == 64


@case(spec="user_event_mm_dup, user_event_enabler_fault_fixup", tier="quick")
@variants((4, 0, 1), (8, 63, 0x8000000000000000))
def test_fork_follows(ue: UserEvents, size: int, bit: int, enabled: int) -> None:
    """After fork both copies of the word are updated, although their page is copy-on-write."""
    word = ue.open_data().register(ue.name(), bit=bit, word=ue.process.word(size)).word
    copy = ue.fork(ue.process).word_at(word.address, size, value=None)
    ue.tracefs.enable(ue.name())
    assert (word.wait(), copy.wait()) == (enabled, enabled)
    ue.tracefs.disable(ue.name())
    assert (word.wait(), copy.wait()) == (0, 0)


@case(spec="user_event_mm_dup", tier="quick")
def test_fork_of_several_words(ue: UserEvents) -> None:
    """A child inherits every word of its parent, each with its size, address, bit and event."""
    data, word = ue.open_data(), ue.process.word(8)
    data.register(ue.name("one"), word=word, bit=5)
    data.register(ue.name("one"), word=word, bit=63)
    other = ue.process.word(offset=4)
    data.register(ue.name("two"), word=other, bit=31)
    child = ue.fork(ue.process)
    # With a page of its own on either side, updates are immediate.
    copies = child.word_at(word.address, 8), child.word_at(other.address)
    ue.process.store(word.address, bytes(8))
    ue.tracefs.enable(ue.name("one"))
    assert (copies[0].value, copies[1].value) == (0x8000_0000_0000_0020, 0)
    ue.tracefs.enable(ue.name("two"))
    assert (word.value, copies[1].value) == (0x8000_0000_0000_0020, 0x8000_0000)


@case(spec="user_event_enabler_write: a page that is there is written at once")
def test_fork_touched(ue: UserEvents) -> None:
    """Once both sides have written to the page after fork, updates are immediate."""
    word = ue.event(bit=1).word
    copy = ue.fork(ue.process).word_at(word.address, value=0x10)
    ue.process.store(word.address, b"\x20\0\0\0")
    ue.tracefs.enable(ue.name())
    assert (word.value, copy.value) == (0x22, 0x12)


@case(spec="user_event_mm_dup, user_event_enabler_fault_fixup", tier="quick")
def test_fork_while_enabled(ue: UserEvents) -> None:
    """A child of a process with an enabled event inherits the set bit and sees it cleared."""
    word = ue.event(bit=4, enabled=True).word
    copy = ue.fork(ue.process).word_at(word.address, value=None)
    assert copy.value == 16
    ue.tracefs.disable(ue.name())
    assert (copy.wait(), word.wait()) == (0, 0)


@case
def test_fork_child_unregisters(ue: UserEvents) -> None:
    """A word that the child unregisters is no longer followed there, but still in its parent."""
    event = ue.event(bit=2)
    child = ue.fork(ue.process)
    copy = child.word_at(event.word.address, value=0)
    assert event.data.of(child).unregister(copy, bit=2).value == 0
    event.enable()
    assert (event.word.wait(), copy.wait()) == (4, 0)


@case
def test_fork_parent_unregisters(ue: UserEvents) -> None:
    """A word that the parent unregisters is no longer followed there, but still in its child."""
    event = ue.event(bit=2)
    copy = ue.fork(ue.process).word_at(event.word.address, value=0)
    assert event.data.unregister(event.word, bit=2).value == 0
    event.enable()
    assert (copy.wait(), event.word.wait()) == (4, 0)


@case(spec="user_event_mm_remove")
def test_fork_parent_exits(ue: UserEvents) -> None:
    """A child's word is followed after its parent has exited."""
    parent = ue.new_process()
    word = parent.open_data().register(ue.name(), bit=7).word
    copy = ue.fork(parent).word_at(word.address, value=None)
    parent.exit()
    ue.tracefs.enable(ue.name())
    assert copy.wait() == 128


@case(spec="user_event_mm_dup copies what there is", tier="quick")
@doc("Registering: a process tells the kernel which of its addresses and bits to update")
def test_fork_before_registration(ue: UserEvents) -> None:
    """A word registered after fork is not followed in the other process."""
    data, word = ue.open_data(), ue.process.word()
    child = ue.fork(ue.process)
    copy = child.word_at(word.address, value=0)
    data.register(ue.name("parent"), bit=0, word=word)
    data.of(child).register(ue.name("child"), bit=1, word=copy)
    ue.enable("parent", "child")
    assert (word.wait(), copy.wait()) == (1, 2)


@case(spec="user_event_enabler_write: by address space and address", level="behaviour")
@doc("Status: the kernel updates the registered bit; silent about two words in the same memory")
def test_shared_mapping(ue: UserEvents) -> None:
    """In memory shared across fork one word serves both; unregistering in either clears it."""
    data = ue.open_data()
    word = ue.process.word_at(ue.process.map(shared=True))
    data.register(ue.name(), bit=3, word=word)
    child = ue.fork(ue.process)
    copy = child.word_at(word.address, value=None)
    ue.tracefs.enable(ue.name())
    assert copy.wait() == 8
    assert word.value == 8
    assert data.of(child).unregister(copy, bit=3).value == 0
    assert word.value == 0
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert word.wait() == 8


@case(spec="user_event_enabler_fault_fixup: the fault fails", doc=CHANGES, level="behaviour")
def test_unmapped(ue: UserEvents) -> None:
    """Enabling after munmap succeeds, maps nothing, and still updates older and newer words."""
    data, page = ue.open_data(), ue.process.map()
    older = data.register(ue.name(), bit=1).word
    lost = data.register(ue.name(), word=ue.process.word_at(page)).word
    newer = data.register(ue.name(), bit=1).word
    ue.process.unmap(page)
    assert ue.tracefs.enable(ue.name()).value == 2
    assert (older.value, newer.value) == (2, 2)
    assert ue.process.load(lost.address, 4).errno == "EFAULT"
    assert ue.tracefs.enabled(ue.name()).text == "1\n"


@case(doc=CHANGES, level="behaviour", tier="quick")
@spec("user_event_enabler_fault_fixup: tried at the next change")
def test_mapped_again(ue: UserEvents) -> None:
    """New memory mapped at the address of a registered word is updated."""
    data, page = ue.open_data(), ue.process.map()
    word = data.register(ue.name(), bit=5, word=ue.process.word_at(page)).word
    ue.process.unmap(page)
    ue.process.map_again(page)
    assert word.value == 0
    ue.tracefs.enable(ue.name())
    assert word.wait() == 32
    ue.tracefs.disable(ue.name())
    assert word.value == 0


@case(doc=CHANGES, level="behaviour", tier="quick")
@spec("user_event_enabler_fault_fixup: tried at the next change")
def test_unmapped_then_mapped_again(ue: UserEvents) -> None:
    """A change that found no memory mapped has no lasting effect: the next one is followed."""
    data, page = ue.open_data(), ue.process.map()
    word = data.register(ue.name(), bit=0, word=ue.process.word_at(page)).word
    ue.process.unmap(page)
    ue.tracefs.enable(ue.name())
    ue.tracefs.disable(ue.name())
    ue.process.map_again(page)
    ue.process.store(page, b"\0\0\0\0")
    ue.tracefs.enable(ue.name())
    assert word.wait() == 1


@case(spec="user_event_mm_fault_in: fixup_user_fault of a read-only page", level="behaviour")
@doc("Status: the kernel updates the registered bit; silent about memory that changes")
def test_read_only(ue: UserEvents) -> None:
    """Memory made read-only after registration is not written; once writable, it is again."""
    data, page = ue.open_data(), ue.process.map()
    word = data.register(ue.name(), bit=1, word=ue.process.word_at(page)).word
    ue.process.protect(page, READ_ONLY)
    ue.tracefs.enable(ue.name())
    assert word.value == 0
    ue.tracefs.disable(ue.name())
    assert word.value == 0
    ue.process.protect(page, READ_WRITE)
    ue.tracefs.enable(ue.name())
    assert word.wait() == 2
