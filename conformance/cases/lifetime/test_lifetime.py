"""Lifetime of an event: what holds references, and what remains after the last one."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.doomed_event import process_with_event, status_after
from conformance.cases.support.registration import persist_flag
from conformance.client.caller import Word

SPEC = "user_events_release"
DOC = "Deleting: by default an event is deleted when no references are left"
NO_REFERENCES = "Deleting: succeeds only if no references are left in user and kernel space"
case = surface(
    "lifetime", SPEC, DOC, level="contract", profiles="6.4..", needs="auto_delete", tier="full"
)


@case(spec="user_event_put, delayed_destroy_user_event")
@variants({"close_last": "unregister", "unregister_last": "close"})
def test_descriptor_and_word(ue: UserEvents, first: str) -> None:
    """An event lives as long as its descriptor or its enable word, and is deleted after both."""
    passing = process_with_event(ue)
    event = ue.event("u32 a")
    other = ue.open_data()
    event.data.close() if first == "close" else event.unregister()
    assert status_after(ue, passing) == ue.name() + "\n"
    other.unregister(event.word) if first == "close" else event.data.close()
    assert ue.tracefs.status(eventually=True) == ""
    assert ue.tracefs.dynamic_events() == ""


@case(spec="user_event_put, delayed_destroy_user_event", tier="quick")
def test_second_word(ue: UserEvents) -> None:
    """Each registered bit holds the event: it is deleted after the last is unregistered."""
    passing = process_with_event(ue)
    data, other = ue.open_data(), ue.open_data()
    first = data.register(ue.name())
    second = data.register(ue.name(), bit=7, word=first.word)
    data.close()
    other.unregister(first.word)
    assert status_after(ue, passing) == ue.name() + "\n"
    other.unregister(second.word, bit=7)
    assert ue.tracefs.status(eventually=True) == ""


@case(level="behaviour", needs="auto_delete ebadf_when_disabled")
@doc("Deleting: silent about duplicated descriptors; Status: about a write of a disabled event")
def test_duplicate_descriptor(ue: UserEvents) -> None:
    """A duplicated descriptor holds the event like the original."""
    passing = process_with_event(ue)
    event = ue.event()
    duplicate = event.data.dup()
    event.unregister()
    event.data.close()
    assert status_after(ue, passing) == ue.name() + "\n"
    assert duplicate.write_event(0).errno == "EBADF"
    duplicate.close()
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="user_events_ref_add, user_events_release")
def test_second_descriptor(ue: UserEvents) -> None:
    """Every descriptor that registered the event holds it."""
    passing = process_with_event(ue)
    first, second = ue.open_data(), ue.open_data()
    event = first.register(ue.name())
    again = second.register(ue.name())
    second.unregister(event.word)
    second.unregister(again.word)
    first.close()
    assert status_after(ue, passing) == ue.name() + "\n"
    second.close()
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="user_events_ref_add", tier="quick")
def test_registered_twice(ue: UserEvents) -> None:
    """A descriptor that registered the event twice holds it once: one close drops it."""
    data, other = ue.open_data(), ue.open_data()
    first = data.register(ue.name())
    second = data.register(ue.name())
    assert (first.index, second.index) == (0, 0)
    other.unregister(first.word)
    other.unregister(second.word)
    data.close()
    assert ue.tracefs.status(eventually=True) == ""


@case(level="behaviour", bug="enomem-for-bad-address")
@spec("user_events_ioctl_reg, user_event_enabler_create")
@doc("Registering: enable_addr must be write accessible; silent about what a failure leaves")
def test_refused_word(ue: UserEvents) -> None:
    """An event whose enable word cannot be written lives as long as the descriptor."""
    passing, data = process_with_event(ue), ue.open_data()
    errno = ue.bug("enomem-for-bad-address", fixed="EFAULT", present="ENOMEM")
    assert data.register(ue.name(), enable_addr=0).errno == errno
    assert status_after(ue, passing) == ue.name() + "\n"
    data.close()
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="user_event_reg")
def test_disabled_in_use(ue: UserEvents) -> None:
    """Disabling an event that a program has registered does not delete it."""
    passing = process_with_event(ue)
    ue.event(enabled=True).disable()
    assert status_after(ue, passing) == ue.name() + "\n"


@case(spec="delayed_destroy_user_event (refcount_dec_and_test)")
@variants({"other_process": True, "same_process": False})
def test_registered_again_in_time(ue: UserEvents, again: bool) -> None:
    """A name registered again during deferred release keeps the event alive."""
    passing, data = process_with_event(ue), ue.open_data()
    next_data = ue.new_process().open_data() if again else ue.open_data()
    event = data.register(ue.name() + " u32 a")
    data.unregister(event.word)
    data.close()
    second = next_data.register(ue.name() + " u32 a")
    assert (second.value, second.index) == (0, 0)
    assert status_after(ue, passing) == ue.name() + "\n"


@case(level="behaviour", needs="arguments_matched auto_delete", tier="quick")
@spec("destroy_user_event")
@doc("Deleting: an event is deleted when no references are left; silent about names in use")
def test_name_free_again(ue: UserEvents) -> None:
    """A name can get other fields only after its event is deleted."""
    data, other = ue.open_data(), ue.open_data()
    event = data.register(ue.name() + " u32 a")
    assert other.register(ue.name() + " u64 b").errno == "EADDRINUSE"
    data.unregister(event.word)
    data.close()
    assert ue.tracefs.status(eventually=True) == ""
    assert other.register(ue.name() + " u64 b").errno == ""
    assert ue.tracefs.dynamic_events() == "u:" + ue.name() + " u64 b\n"


@case(spec="user_event_set_call_visible; trace_events.c:trace_remove_event_call")
@doc("Registering: events appear in tracefs as events/user_events/NAME, like any other event")
def test_directory(ue: UserEvents) -> None:
    """The directory of an event exists from registration until deletion."""
    path = ue.tracefs.event_path(ue.name(), "enable")
    assert ue.tracefs.read(path).errno == "ENOENT"
    ue.event()
    assert ue.tracefs.read(path).text == "0\n"
    ue.process.exit()
    assert ue.tracefs.read(path, eventually=True).errno == "ENOENT"


@case(spec="user_event_last_ref", doc=NO_REFERENCES)
def test_delete_never_succeeds(ue: UserEvents) -> None:
    """An auto-delete event cannot be deleted: EBUSY while it lives, then ENOENT."""
    data, other = ue.open_data(), ue.open_data()
    event = data.register(ue.name())
    assert other.delete(ue.name()).errno == "EBUSY"
    data.close()
    assert other.delete(ue.name()).errno == "EBUSY"
    other.unregister(event.word)
    assert other.delete(ue.name(), eventually=True).errno == "ENOENT"


@case(level="behaviour", needs="persist")
@spec("user_event_enabler_destroy, delayed_user_event_enabler_put")
@doc("Deleting: succeeds only if no references are left; silent about when they are dropped")
@variants("unregister", "exit")
def test_reference_after_unregister(ue: UserEvents, way: str) -> None:
    """Soon after an enable word is unregistered, nothing prevents deletion."""
    ue.tracefs.command("u:" + ue.name() + "\n")
    process = ue.new_process()
    event = ue.event(of=process)
    event.data.close()
    other = ue.open_data()
    assert other.delete(ue.name()).errno == "EBUSY"
    process.exit() if way == "exit" else process.open_data().unregister(event.word)
    assert other.delete(ue.name(), eventually=True).value == 0


@case(doc=NO_REFERENCES, profiles="5.18..", needs="lasting_events", tier="quick")
def test_reference_after_close(ue: UserEvents) -> None:
    """A closed descriptor holds nothing: the event can be deleted at once."""
    ue.tracefs.command("u:" + ue.name() + "\n")
    data, other = ue.open_data(), ue.open_data()
    # Without a word, which would hold the event as well.
    data.register(ue.name(), enable_addr=0)
    assert other.delete(ue.name()).errno == "EBUSY"
    data.close()
    assert other.delete(ue.name()).value == 0


@case(level="behaviour", profiles="5.18..6.3", needs="", without="auto_delete")
@doc("@v6.1: Deleting: an event is deleted on request; silent about any other end")
def test_lasts(ue: UserEvents) -> None:
    """Before 6.4 an event outlives its program, and the next one finds it unchanged."""
    ue.event("u32 a")
    assert status_after(ue, ue.process) == ue.status_line(1, ue.name())
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    data = ue.new_process().open_data()
    assert data.write_event(0, b"\1\0\0\0").errno == "ENOENT"
    assert data.register(ue.name() + " u32 a").index == 0
    assert ue.tracefs.dynamic_events() == "u:" + ue.name() + " u32 a\n"


@case(spec="user_event_last_ref", doc=NO_REFERENCES, needs="")
def test_many_references(ue: UserEvents) -> None:
    """With 1 to 257 registered words an event is not deleted: EBUSY."""
    data, words = ue.open_data(), ue.process.map()
    for number in range(257):
        word = Word(ue.process, words + 4 * number)
        assert data.register(ue.name(), word=word).errno == ""
        assert data.delete(ue.name()).errno == "EBUSY"


@case(doc=NO_REFERENCES, profiles="5.18..", needs="lasting_events")
def test_many_events(ue: UserEvents) -> None:
    """Closing a descriptor drops its references to all of its 257 events."""
    data = ue.open_data()
    # A rejected word holds nothing.
    nowhere = Word(ue.process, 0)
    for number in range(257):
        data.register(ue.name(f"n{number}"), word=nowhere, flags=persist_flag(ue))
    data.close()
    other = ue.open_data()
    for number in range(257):
        assert other.delete(ue.name(f"n{number}")).errno == ""


@case(level="behaviour", profiles="5.18..6.3", needs="", without="auto_delete")
@spec("user_event_reg")
@doc("@v6.1: Deleting: an event is deleted on request; silent about any other end")
def test_lasts_while_traced(ue: UserEvents) -> None:
    """An enabled event whose program is gone still records the writes of the next one."""
    ue.event("u16 a", enabled=True)
    assert status_after(ue, ue.process) == ue.status_line(1, ue.name(), "ftrace")
    assert ue.event("u16 a", of=ue.new_process()).data.write_event(0, b"\1\0").value == 6
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)", dump="01 00")]
