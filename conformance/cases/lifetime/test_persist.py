"""USER_EVENT_REG_PERSIST: events that stay until they are deleted, and the permission for it."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.doomed_event import process_with_event, status_after
from conformance.cases.support.registration import MULTI_FORMAT, PERSIST
from conformance.client.tracefs import MULTI_SYSTEM

SPEC = "user_event_last_ref"
DOC = "Deleting: an event that persists exists until DIAG_IOCSDEL"
CAPABILITY = "Registering: USER_EVENT_REG_PERSIST requires CAP_PERFMON, otherwise -EPERM"
case = surface(
    "persist", SPEC, DOC, level="contract", profiles="6.4..", needs="persist", tier="full"
)


# Without these switches no flag is known, or a known one is not rejected.
@case(needs="auto_delete text_flags_refused", tier="quick", switch="persist")
@doc("Registering: USER_EVENT_REG_PERSIST is supported; a flag that is not gives -EINVAL")
@spec("user_reg_get, user_event_parse")
def test_accepted(ue: UserEvents) -> None:
    """The flag is known since 6.7; before, it is EINVAL."""
    assert ue.event(flags=PERSIST).errno == ue.dated("persist", since="", before="EINVAL")


@case(spec="user_event_parse (refcount_set)", needs="persist auto_delete", tier="quick")
@doc("Registering: with USER_EVENT_REG_PERSIST the last reference does not delete the event")
@variants({"unregister_and_close": "unregister", "exit": "exit"})
def test_stays(ue: UserEvents, way: str) -> None:
    """A persistent event stays after its last reference is dropped."""
    passing = process_with_event(ue)
    event = ue.event("u32 a", flags=PERSIST)
    if way == "exit":
        ue.process.exit()
    else:
        event.unregister()
        event.data.close()
    assert status_after(ue, passing) == ue.name() + "\n"
    assert ue.tracefs.dynamic_events() == "u:" + ue.name() + " u32 a\n"
    assert ue.tracefs.enabled(ue.name()).text == "0\n"


@case(spec="find_user_event", level="behaviour", needs="persist arguments_matched")
@doc("Registering: with the flag the event stays; silent about other fields")
@variants({"with_flag": 1, "without_flag": 0})
def test_taken_up_again(ue: UserEvents, flags: int) -> None:
    """A later program that registers the event finds it with its tracer and fields."""
    ue.open_data().register(ue.name() + " u32 a", flags=PERSIST)
    ue.process.exit()
    ue.tracefs.enable(ue.name())
    data = ue.new_process().open_data()
    assert data.register(ue.name() + " u64 a", flags=flags).errno == "EADDRINUSE"
    event = data.register(ue.name() + " u32 a", flags=flags)
    assert (event.value, event.index, event.word.value) == (0, 0, 1)


@case(spec="delete_user_event, user_event_last_ref", tier="quick")
def test_deleted(ue: UserEvents) -> None:
    """A persistent event without references can be deleted, once."""
    data, other = ue.open_data(), ue.open_data()
    event = data.register(ue.name() + " u32 a", flags=PERSIST)
    assert other.delete(ue.name()).errno == "EBUSY"
    data.unregister(event.word)
    data.close()
    assert other.delete(ue.name(), eventually=True).value == 0
    assert other.delete(ue.name()).errno == "ENOENT"
    assert ue.tracefs.status() == ""


@case(spec="destroy_user_event", needs="persist auto_delete")
@doc("Unregistering: deleting, in contrast, removes the event from the system")
def test_deleted_and_made_again(ue: UserEvents) -> None:
    """After deletion the name can be registered with other fields, and without the flag."""
    data, other = ue.open_data(), ue.open_data()
    event = data.register(ue.name() + " u32 a", flags=PERSIST)
    data.unregister(event.word)
    data.close()
    other.delete(ue.name(), eventually=True)
    again = other.register(ue.name() + " u64 b")
    assert again.errno == ""
    other.unregister(again.word)
    other.close()
    assert ue.tracefs.dynamic_events(eventually=True) == ""


@case(spec="user_event_free", tier="quick")
@doc("Overview: dynamic_events registers and deletes events, too")
def test_deleted_by_command(ue: UserEvents) -> None:
    """A persistent event of a program can be deleted through dynamic_events."""
    data = ue.open_data()
    # No enable word: no deferred release.
    data.register(ue.name() + " u32 a", flags=PERSIST, enable_addr=0)
    assert ue.tracefs.command("-:" + ue.name() + " u32 a\n").errno == "EBUSY"
    data.close()
    assert ue.tracefs.command("-:" + ue.name() + " u32 a\n").errno == ""
    assert ue.tracefs.status() == ""


@case(tier="quick")
@doc("Deleting: succeeds only if no references are left in user and kernel space")
def test_tracer_blocks_deletion(ue: UserEvents) -> None:
    """An enabled persistent event cannot be deleted; disabling does not delete it."""
    ue.tracefs.command("u:" + ue.name() + " u32 a\n")
    ue.tracefs.enable(ue.name())
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status() == ue.name() + "\n"
    assert data.delete(ue.name()).value == 0


@case(level="behaviour", needs="persist auto_delete", tier="quick")
@spec("find_user_event (reg_flags are those of the creation)")
@doc("Registering: USER_EVENT_REG_PERSIST keeps the event; silent about one that exists without")
def test_flag_on_existing(ue: UserEvents) -> None:
    """The flag is accepted for an existing event, but does not make it persist."""
    first, second = ue.open_data(), ue.open_data()
    first.register(ue.name() + " u32 a")
    assert second.register(ue.name() + " u32 a", flags=PERSIST).value == 0
    assert status_after(ue, ue.process) == ""


@case(spec="find_user_event (reg_flags are those of the creation)", needs="persist auto_delete")
def test_without_flag_on_existing(ue: UserEvents) -> None:
    """Registering a persistent event without the flag does not end its persistence."""
    passing = process_with_event(ue)
    ue.event(flags=PERSIST)
    assert ue.open_data().register(ue.name()).value == 0
    ue.process.exit()
    assert status_after(ue, passing) == ue.name() + "\n"


@case(spec="user_event_capable", doc=CAPABILITY)
def test_not_permitted(ue: UserEvents) -> None:
    """A process without CAP_PERFMON cannot use the flag, and creates no event."""
    data = ue.open_data()
    ue.process.setuid()
    event = data.register(ue.name(), flags=PERSIST)
    assert (event.value, event.errno) == (-1, "EPERM")
    assert ue.tracefs.status() == ""
    assert data.register(ue.name()).value == 0


@case(level="detail", needs="persist text_flags_refused")
@spec("user_events_ioctl_reg, user_event_parse")
@doc("Registering: silent about which of two errors is reported")
@variants(
    # Checked before the permission: the string, and text flags in it.
    ("too_long", "{}" + "x" * 505, "EINVAL"),
    ("text_flags", "{}:flag u32 a", "EINVAL"),
    # After it: fields that differ or do not parse, and success.
    ("existing_other_fields", "{} u64 b", "EPERM"),
    ("existing_equal", "{} u32 a", "EPERM"),
    ("bad_field", "{}new long a", "EPERM"),
)
def test_order_of_checks(ue: UserEvents, definition: str, errno: str) -> None:
    """The permission is checked after the string and its flags, and before the fields."""
    data = ue.event("u32 a").data
    ue.process.setuid()
    assert data.register(definition.format(ue.name()), flags=PERSIST).errno == errno


@case(spec="user_events_ioctl_reg", level="detail")
@doc("Registering: silent about which of two errors is reported")
@variants(
    ("null_string", 0, 1, "EFAULT"),
    ("word_in_use", None, 0, "EADDRINUSE"),
    ("neither", None, 1, "EPERM"),
)
def test_order_of_checks_pointers(ue: UserEvents, string: int | None, bit: int, errno: str) -> None:
    """A bad string pointer and a bit in use are detected before the permission is checked."""
    data = ue.open_data()
    first = data.register(ue.name())
    ue.process.setuid()
    again = data.register(ue.name(), flags=PERSIST, word=first.word, bit=bit, name_args=string)
    assert again.errno == errno


@case(spec="user_event_parse", doc=CAPABILITY, needs="multi_format persist")
@variants(("persist", 1, "EPERM"), ("persist_multi", 3, "EPERM"), ("multi", 2, ""))
def test_permission_for_flags(ue: UserEvents, flags: int, errno: str) -> None:
    """Only USER_EVENT_REG_PERSIST needs a capability, alone or with other flags."""
    data = ue.open_data()
    ue.process.setuid()
    assert data.register(ue.name() + " u32 a", flags=flags).errno == errno


@case(spec="user_event_parse, find_user_event", level="behaviour")
@doc("Registering: USER_EVENT_REG_PERSIST requires CAP_PERFMON; silent about events that exist")
def test_ordinary_user_takes_part(ue: UserEvents) -> None:
    """Without the flag any user can register an event that persists."""
    ue.tracefs.command("u:" + ue.name() + " u32 a\n")
    data = ue.open_data()
    ue.process.setuid()
    event = data.register(ue.name() + " u32 a")
    assert (event.value, event.index) == (0, 0)
    ue.tracefs.enable(ue.name())
    assert event.word.value == 1


@case(spec="delete_user_event")
@doc("Deleting: deleting an event that persists requires CAP_PERFMON, otherwise -EPERM")
def test_delete_not_permitted(ue: UserEvents) -> None:
    """A process without CAP_PERFMON cannot delete a persistent event: EPERM."""
    ue.tracefs.command("u:" + ue.name() + "\n")
    data = ue.open_data()
    ue.process.setuid()
    assert (data.delete(ue.name()).errno, data.delete(ue.name("none")).errno) == ("EPERM", "ENOENT")
    assert ue.tracefs.status() == ue.name() + "\n"


@case(spec="delete_user_event", level="detail")
@doc("Deleting: silent about which of two errors is reported")
def test_delete_busy_before_permission(ue: UserEvents) -> None:
    """For an event in use a process without CAP_PERFMON gets EBUSY, not EPERM."""
    ue.tracefs.command("u:" + ue.name() + "\n")
    data = ue.open_data()
    ue.process.setuid()
    ue.tracefs.enable(ue.name())
    assert data.delete(ue.name()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert data.delete(ue.name()).errno == "EPERM"


@case(needs="multi_format arguments_matched auto_delete persist", tier="quick")
@spec("user_event_set_tp_name, user_event_last_ref")
@doc("Registering: with USER_EVENT_REG_PERSIST the last reference does not delete the event")
def test_multi_format(ue: UserEvents) -> None:
    """With both flags every format persists, under its own tracepoint."""
    data = ue.event("u32 a", flags=PERSIST | MULTI_FORMAT).data
    data.register(ue.name() + " u64 a", flags=PERSIST | MULTI_FORMAT)
    before = ue.tracefs.status()
    passing = process_with_event(ue)
    ue.process.exit()
    passing.exit()
    after = ue.tracefs.status(eventually=True)
    assert after == before
    assert [line.rpartition(".")[0] for line in after.splitlines()] == [ue.name()] * 2
    assert ue.tracefs.enabled(after.split()[0], system=MULTI_SYSTEM).text == "0\n"


@case(needs="multi_format arguments_matched auto_delete persist")
@doc("Registering: with USER_EVENT_REG_PERSIST the last reference does not delete the event")
def test_one_format_of_several(ue: UserEvents) -> None:
    """Of the formats of one name only those created with the flag persist."""
    data = ue.event("u32 a", flags=MULTI_FORMAT).data
    data.register(ue.name() + " u64 a", flags=PERSIST | MULTI_FORMAT)
    ue.process.exit()
    assert ue.tracefs.dynamic_events(eventually=True) == "u:" + ue.name() + " u64 a\n"


@case(spec="delete_user_event", needs="multi_format arguments_matched persist")
@doc("Deleting: with several formats of a name, deletion of all of them is attempted")
def test_multi_format_deleted(ue: UserEvents) -> None:
    """One deletion removes all persistent formats of a name."""
    data, other = ue.open_data(), ue.open_data()
    # No enable words: no deferred release.
    for fields in (" u32 a", " u64 a", ""):
        data.register(ue.name() + fields, flags=PERSIST | MULTI_FORMAT, enable_addr=0)
    data.close()
    assert len(ue.tracefs.status().splitlines()) == 3
    assert other.delete(ue.name()).value == 0
    assert ue.tracefs.status() == ""
