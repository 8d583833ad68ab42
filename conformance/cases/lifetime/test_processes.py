"""Lifetime of an event whose processes fork and exit, or leave a tracer behind."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.doomed_event import process_with_event, status_after

SPEC = "user_event_mm_dup"
DOC = "Deleting: by default an event is deleted when no references are left"
FORKED = "Unregistering: fork() retains registered events; each process unregisters its own"
LATER = "Unregistering: fork() retains registered events; silent about later ones"
case = surface(
    "lifetime", SPEC, DOC, level="contract", profiles="6.4..", needs="auto_delete", tier="full"
)


@case(spec="user_event_mm_remove", tier="quick")
@variants({"descriptor_open": False, "descriptor_closed": True})
def test_exit(ue: UserEvents, closed: bool) -> None:
    """Exit of a process drops the references of its descriptors and enable words."""
    data = ue.register(a="", b="u32 x")
    if closed:
        data.close()
    assert status_after(ue, ue.process) == ""


@case(spec="current_user_event_enabler_exists, user_event_enabler_create", tier="quick")
def test_exit_after_failures(ue: UserEvents) -> None:
    """Failed registrations hold nothing: exit of the process deletes its event."""
    event = ue.event()
    assert event.data.register(ue.name(), word=event.word).errno == "EADDRINUSE"
    # Which errno is a matter of the bug enomem-for-bad-address.
    assert event.data.register(ue.name(), enable_addr=0).errno
    assert status_after(ue, ue.process) == ""


@case(spec="user_event_enabler", level="behaviour")
@doc("Deleting: silent about memory that went away")
def test_unmapped_word(ue: UserEvents) -> None:
    """Unmapping the enable word does not end its registration."""
    passing = process_with_event(ue)
    data, page = ue.open_data(), ue.process.map()
    data.register(ue.name(), word=ue.process.word_at(page))
    data.close()
    ue.process.unmap(page)
    assert status_after(ue, passing) == ue.name() + "\n"
    assert status_after(ue, ue.process) == ""


@case(spec="user_event_reg", tier="quick")
@doc("Deleting:")
@doc("by default an event is deleted when no references are left, in user and kernel space")
def test_tracer(ue: UserEvents) -> None:
    """An enabled event whose programs have exited stays until it is disabled."""
    passing = process_with_event(ue)
    event = ue.event("u32 a", enabled=True)
    ue.process.exit()
    assert status_after(ue, passing) == ue.name() + " # Used by ftrace\n"
    assert ue.tracefs.enabled(ue.name()).text == "1\n"
    assert event.disable().value == 2
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="user_event_enabler_create")
@doc("Registering: enable_bit reflects the status of the event at enable_addr")
def test_tracer_meets_next_program(ue: UserEvents) -> None:
    """Registering an enabled event that was left behind sets the bit at once."""
    ue.open_data().register(ue.name() + " u32 a")
    ue.tracefs.enable(ue.name())
    ue.process.exit()
    process = ue.new_process()
    event = process.open_data().register(ue.name() + " u32 a", bit=5)
    assert event.word.value == 0x20
    ue.tracefs.disable(ue.name())
    assert event.word.value == 0


@case(spec="find_user_event", level="behaviour", needs="auto_delete arguments_matched")
@doc("Registering: without USER_EVENT_REG_MULTI_FORMAT a changed format is blocked;")
@doc("silent about the error")
def test_left_behind_keeps_fields(ue: UserEvents) -> None:
    """While a tracer holds an event, its name cannot be registered with other fields."""
    event = ue.event("u32 a", enabled=True)
    ue.process.exit()
    data = ue.new_process().open_data()
    assert data.register(ue.name() + " u64 a").errno == "EADDRINUSE"
    event.disable()
    assert ue.tracefs.status(eventually=True) == ""
    assert data.register(ue.name() + " u64 a").errno == ""


@case(doc=FORKED, tier="quick")
@variants({"descriptor_and_word": "both", "word": "word", "descriptor": "descriptor"})
def test_child(ue: UserEvents, holds: str) -> None:
    """A forked child holds its parent's events through its copies until it exits."""
    passing = process_with_event(ue)
    event, child = ue.event(), ue.fork(ue.process)
    if holds == "word":
        event.data.of(child).close()
    elif holds == "descriptor":
        event.data.of(child).unregister(event.word)
    ue.process.exit()
    assert status_after(ue, passing) == ue.name() + "\n"
    assert status_after(ue, child) == ""


@case(spec="user_events_ioctl_unreg", doc=FORKED)
def test_child_lets_go(ue: UserEvents) -> None:
    """References that a child drops are still held by its parent, word and descriptor each."""
    passing = process_with_event(ue)
    event, child = ue.event(), ue.fork(ue.process)
    assert event.data.of(child).unregister(event.word).value == 0
    assert event.data.of(child).unregister(event.word).errno == "ENOENT"
    child.exit()
    event.data.close()
    assert status_after(ue, passing) == ue.name() + "\n"
    assert status_after(ue, ue.process) == ""


@case(doc=LATER, level="behaviour")
def test_child_before_registration(ue: UserEvents) -> None:
    """A child forked before the registration holds nothing of it."""
    child = ue.fork(ue.process)
    event = ue.event()
    assert status_after(ue, ue.process) == ""
    assert child.open_data().unregister(event.word).errno == "ENOENT"


@case(doc=LATER, level="behaviour", needs="auto_delete ebadf_when_disabled")
def test_child_gets_the_descriptor_alone(ue: UserEvents) -> None:
    """A child's copy of a descriptor holds events that the parent registers on it later."""
    passing, data = process_with_event(ue), ue.open_data()
    child = ue.fork(ue.process)
    data.register(ue.name())
    ue.process.exit()
    assert status_after(ue, passing) == ue.name() + "\n"
    assert data.of(child).write_event(0).errno == "EBADF"
    data.of(child).close()
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="user_event_mm_remove", level="behaviour")
@doc("Unregistering: silent about the bit of a process that exits")
def test_word_left_alone(ue: UserEvents) -> None:
    """A process that exits does not clear its bit in shared memory."""
    passing = process_with_event(ue)
    page = ue.process.map(shared=True)
    ue.process.store(page, bytes(4))
    child = ue.fork(ue.process)
    child.open_data().register(ue.name(), bit=4, word=child.word_at(page, value=None))
    ue.tracefs.enable(ue.name())
    assert ue.process.load_number(page, 4) == 0x10
    child.exit()
    assert status_after(ue, passing) == ue.name() + " # Used by ftrace\n"
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status(eventually=True) == ""
    assert ue.process.load_number(page, 4) == 0x10
