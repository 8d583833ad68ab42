"""Successful DIAG_IOCSREG: write index, enable bit, and the limit of events and ids."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.registration import error_of
from conformance.client.tracefs import MAXIMUM

DOC = "Registering: write_index is unique to this instance of the file descriptor"
VALUE = "Registering: write_index is unique to the descriptor; silent about its value"
LIMIT = "Documentation/admin-guide/sysctl/kernel.rst@v6.12: user_events_max is not described"
case = surface("registration", spec="user_event_parse", doc=DOC, level="behaviour", tier="full")


@case(spec="user_events_ref_add", doc=VALUE, tier="quick")
def test_index_counts(ue: UserEvents) -> None:
    """A descriptor numbers its events from 0 in the order of their first registration."""
    data = ue.open_data()
    assert (data.register(ue.name("c")).index, data.register(ue.name("a")).index) == (0, 1)
    assert (data.register(ue.name("b")).index, data.register(ue.name("a")).index) == (2, 1)
    assert data.register(ue.name("c")).index == 0


@case(spec="user_events_ref_add", profiles="6.4..")
@doc("Unregistering: the event is not removed; silent about its write index")
def test_index_is_kept(ue: UserEvents) -> None:
    """An unregistered event keeps its index: the next event gets the next one."""
    data = ue.open_data()
    data.unregister(data.register(ue.name("a")).word)
    assert (data.register(ue.name("b")).index, data.register(ue.name("a")).index) == (1, 0)


@case(spec="user_events_ioctl_reg", doc=VALUE, level="detail")
@variants({"bad-field": "x long a", "too-long": "x" * 512})
def test_index_not_burnt(ue: UserEvents, definition: str) -> None:
    """A rejected registration uses no index."""
    data = ue.event(name="a").data
    assert error_of(data.register(ue.name(definition))) == "EINVAL"
    assert data.register(ue.name("b")).index == 1


@case(spec="user_events_open", level="contract")
def test_index_per_descriptor(ue: UserEvents) -> None:
    """Indices are per open file; the same event has an index in each."""
    first, second = ue.open_data(), ue.open_data()
    first.register(ue.name("a"))
    assert (first.register(ue.name("b")).index, second.register(ue.name("b")).index) == (1, 0)
    assert second.register(ue.name("a")).index == 1


@case(spec="user_events_ref_add")
@doc("Registering: write_index is unique to the descriptor; silent about dup()")
def test_index_after_dup(ue: UserEvents) -> None:
    """A duplicated descriptor continues the numbering of the original."""
    data = ue.event(name="a").data
    copy = data.dup()
    assert copy.register(ue.name("b")).index == 1
    data.close()
    assert (copy.register(ue.name("c")).index, copy.register(ue.name("a")).index) == (2, 0)


@case(spec="user_events_ref_add")
@doc("Registering: write_index is unique to the descriptor; silent about fork()")
def test_index_after_fork(ue: UserEvents) -> None:
    """Parent and child share the numbering of an inherited descriptor."""
    data = ue.event(name="a").data
    assert data.of(ue.fork(ue.process)).register(ue.name("b")).index == 1
    assert data.register(ue.name("c")).index == 2
    assert data.register(ue.name("b")).index == 1


@case(spec="user_events_release", doc=VALUE)
def test_index_after_close(ue: UserEvents) -> None:
    """A file that is opened again numbers from 0."""
    ue.register(a="", b="").close()
    assert ue.open_data().register(ue.name("b")).index == 0


@case(spec="user_data_fops", tier="quick")
@doc("Registering: an ioctl of user_events_data; silent about open modes")
@variants({"read-only": os.O_RDONLY, "write-only": os.O_WRONLY})
def test_any_open_mode(ue: UserEvents, flags: int) -> None:
    """Registration works with any open mode."""
    seen = ue.open_data(flags).register(ue.name())
    assert (seen.value, seen.index) == (0, 0)


@case(spec="fs/ioctl.c:ioctl", level="detail", tier="quick")
@doc("Registering: an ioctl of user_events_data; silent about closed descriptors")
def test_closed_descriptor(ue: UserEvents) -> None:
    """Registering on a closed descriptor is EBADF."""
    data = ue.open_data()
    data.close()
    assert error_of(data.register(ue.name())) == "EBADF"


@case(spec="user_event_enabler_create", level="contract", profiles="6.4..")
@doc("Registering: enable_bit reflects the status of the event at enable_addr")
def test_bit_tells_the_state(ue: UserEvents) -> None:
    """Success sets the bit of an enabled event at once, and clears that of a disabled one."""
    data = ue.event(name="on", enabled=True).data
    word = ue.process.word(value=0xF0)
    assert data.register(ue.name("on"), word=word, bit=1).value == 0
    assert data.register(ue.name("off"), word=word, bit=6).value == 0
    assert word.value == 0xB2


@case(doc=LIMIT, profiles="6.4..", isolation="global")
def test_maximum(ue: UserEvents) -> None:
    """With kernel.user_events_max events a new one is EMFILE; existing ones can be registered."""
    data = ue.open_data()
    ue.tracefs.write(MAXIMUM, "2\n")
    assert (data.register(ue.name("a")).index, data.register(ue.name("b")).index) == (0, 1)
    assert error_of(data.register(ue.name("c"))) == "EMFILE"
    assert data.register(ue.name("a")).index == 0
    ue.tracefs.write(MAXIMUM, "3\n")
    assert data.register(ue.name("c")).index == 2


@case(doc=LIMIT, profiles="6.4..", isolation="global", tier="quick")
def test_maximum_lowered(ue: UserEvents) -> None:
    """A limit below the number of events removes none and rejects every new one."""
    data = ue.event(name="a").data
    ue.tracefs.write(MAXIMUM, "0\n")
    assert error_of(data.register(ue.name("b"))) == "EMFILE"
    assert ue.tracefs.status(whole=True) == f"{ue.name('a')}\n\nActive: 1\nBusy: 0\n"


@case(spec="max_user_events", doc=LIMIT, profiles="6.4..", tier="quick")
def test_maximum_default(ue: UserEvents) -> None:
    """The default limit is 32768 events."""
    assert ue.tracefs.read(MAXIMUM).text == "32768\n"


# Lines of dynamic_events in one write(2).
_BATCH = 300
# More than the kernel has events of its own.
_REFUSED = 1000


@case(
    level="detail", profiles="6.4..", needs="persist lasting_events auto_delete", isolation="fatal"
)
@spec("trace_output.c:register_trace_event; trace_events_user.c:user_event_trace_register")
@doc("Documentation/admin-guide/sysctl/kernel.rst@v6.12: user_events_max, no other limit")
def test_no_id_left(ue: UserEvents) -> None:
    """All events share 65535 ids: when none is free a new event is ENODEV, and does not count."""
    data = ue.open_data()
    ue.tracefs.command("u:first\n")
    assert ue.tracefs.read(ue.tracefs.event_path("first", "id")).errno == ""
    ue.tracefs.write(MAXIMUM, "70000\n")
    # Names with a slash get no directory, and creating directories is most of the work.
    stem = "e" if ue.profile.fixed("event-name-slash") else "/"
    for start in range(0, 65535, _BATCH):
        # The last ones fail because the kernel's own events have ids, too.
        ue.tracefs.command("".join(f"u:{stem}{start + each}\n" for each in range(_BATCH)))
    assert ue.tracefs.command("u:more\n").errno == "ENODEV"
    assert data.register("more u8 a").errno == "ENODEV"
    assert data.register("more long a").errno == "EINVAL"
    ue.tracefs.write(MAXIMUM, "1\n")
    assert data.register("more u8 a").errno == "EMFILE"
    ue.tracefs.write(MAXIMUM, "70000\n")
    # An existing event needs no id, and a freed id is used by the next event.
    assert data.register("first").errno == ""
    assert data.delete(f"{stem}7").errno == ""
    assert (data.register("more u8 a").errno, data.register("another u8 a").errno) == ("", "ENODEV")
    # A rejected event does not count: with its id free again an event fits below the limit.
    assert {ue.tracefs.command("u:another\n").errno for _ in range(_REFUSED)} == {"ENODEV"}
    ue.tracefs.write(MAXIMUM, "65535\n")
    assert data.delete(f"{stem}8").errno == ""
    assert data.register("another u8 a").errno == ""
