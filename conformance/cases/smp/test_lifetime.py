"""Two CPUs: processes and pages that come and go."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.smp import Racers, enable_file
from conformance.client.addresses import PAGE
from conformance.client.caller import Word
from conformance.client.races import race, track
from conformance.ops import Discard, Exit, Mprotect, Mremap, Munmap
from conformance.ops.tasks import CLONE_VM, THREAD, ExitTask

SPEC = "user_event_enabler_fault_fixup"
DOC = "Unregistering: during fork() registered events are retained"
case = surface("smp", SPEC, DOC, level="contract", profiles="6.4..", tier="full", facilities="smp")


@case(spec="user_event_mm_dup")
@variants(("on", True, 8), ("off", False, 0))
def test_forks_while_switched(ue: UserEvents, listening: bool, seen: int) -> None:
    """The word of each child forked during switching follows from the next change on."""
    both = Racers(ue, 0)
    word = both.left.open_data().register(ue.name(), bit=3).word
    on, off = both.prepared_right.switch(enable_file(ue))
    switching = (off, on) if listening else (on, off)
    forks = [both.left.cloning() for _ in range(3)]
    answers = race(both.left, track(both.left, *forks), track(both.right, *switching, passes=6))
    assert answers == [[{"0": 1}] * 3, [{"1": 6}] * 2]
    copies = [both.left.adopt(fork).word_at(word.address, value=None) for fork in forks]
    ue.tracefs.enable(ue.name())
    if not listening:
        ue.tracefs.disable(ue.name())
    assert {each.wait() for each in (word, *copies)} == {seen}


@case(spec="user_event_mm_remove")
@doc("Status: the kernel updates the specified bit as tools attach to the event and detach from it")
@variants(("thread", THREAD, True), ("memory", CLONE_VM, True), ("process", 0, False))
def test_ends_while_switched(ue: UserEvents, flags: int, alone: bool) -> None:
    """A task that exits during switching does not affect the words of the others."""
    both = Racers(ue, flags, registered=True)
    kept = both.right.open_data().register(ue.name(), bit=1, word=both.right.word()).word
    both.left.open_data().register(ue.name(), bit=2, word=both.left.word())
    on, off = both.prepared_right.switch(enable_file(ue))
    actor = both.left.actor
    end = ExitTask(actor) if alone else Exit(actor)
    answers = race(both.right, track(both.left, end), track(both.right, off, on, passes=10))
    assert answers == [[{"0": 1}], [{"1": 10}, {"1": 10}]]
    assert kept.wait() == 2
    ue.tracefs.disable(ue.name())
    assert kept.wait() == 0


@case
@doc("Status: the kernel updates the specified bit as tools attach to the event and detach from it")
@variants({"one-word": 0, "two-words": 8, "two-pages": PAGE})
def test_two_faults_on_a_page(ue: UserEvents, apart: int) -> None:
    """Two events enabled concurrently while the pages of their words are absent are both set."""
    both = Racers(ue)
    address = both.left.map(2)
    data = both.left.open_data()
    first = Word(both.left, address)
    second = Word(both.left, address + apart)
    data.register(ue.name("a"), bit=0, word=first)
    data.register(ue.name("b"), bit=9, word=second)
    one, _ = both.prepared_left.switch(enable_file(ue, "a"))
    two, _ = both.prepared_right.switch(enable_file(ue, "b"))
    both.left.run(Discard(both.left.actor, address, 2 * PAGE))
    assert both.race([one], [two]) == [[{"1": 1}], [{"1": 1}]]
    assert (first.wait() & 1, second.wait() & 0x200) == (1, 0x200)


@case(spec="user_event_mm_dup; trace_events_user.c:user_event_enabler_fault_fixup")
@variants({"away": True, "there": False})
def test_fork_while_a_fault_waits(ue: UserEvents, discarded: bool) -> None:
    """A child forked while the parent's page is faulted in follows from the next change on."""
    both = Racers(ue, 0)
    address = both.left.map()
    word = Word(both.left, address)
    both.left.open_data().register(ue.name(), bit=4, word=word)
    on, _ = both.prepared_right.switch(enable_file(ue))
    if discarded:
        both.left.run(Discard(both.left.actor, address, PAGE))
    fork = both.left.cloning()
    assert both.race([fork], [on]) == [[{"0": 1}], [{"1": 1}]]
    assert word.wait() == 16
    copy = Word(both.left.adopt(fork), address)
    assert copy.wait() in (0, 16)
    ue.tracefs.disable(ue.name())
    ue.tracefs.enable(ue.name())
    assert (word.wait(), copy.wait()) == (16, 16)


@case(level="behaviour")
@doc("Registering: enable_addr must be write accessible; silent about one that is not any more")
@variants(
    ("discarded", "discard"), ("unmapped", "unmap"), ("protected", "protect"), ("moved", "move")
)
def test_page_goes_while_switched(ue: UserEvents, way: str) -> None:
    """Discarding a page while its word is written does no harm; the next change writes it again."""
    both = Racers(ue)
    address, actor = both.left.map(), both.left.actor
    word = Word(both.left, address)
    both.left.open_data().register(ue.name(), bit=0, word=word)
    on, off = both.prepared_right.switch(enable_file(ue))
    elsewhere = both.left.reserve(1)
    goes = {
        "discard": Discard(actor, address, PAGE),
        "unmap": Munmap(actor, address, PAGE),
        "protect": Mprotect(actor, address, PAGE, 0),
        "move": Mremap(actor, address, PAGE, elsewhere),
    }[way]
    answers = race(both.left, track(both.left, goes), track(both.right, on, off, passes=4))
    answer = f"{elsewhere}" if way == "move" else "0"
    assert answers == [[{answer: 1}], [{"1": 4}, {"1": 4}]]
    if way in ("unmap", "move"):
        assert both.left.map_again(address).errno == ""
    elif way == "protect":
        assert both.left.protect(address, 3).value == 0
    both.left.store(address, b"\0\0\0\0")
    ue.tracefs.enable(ue.name())
    assert word.wait() == 1
