"""Status index: which number an event gets, and how long it keeps it."""

import os

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.registration import UNTOUCHED
from conformance.cases.support.status_page import map_page

SPEC = "user_event_create"
DOC = (
    "@v5.19 and @v6.1: Registering: status_index, since 6.1 status_bit, "
    "is the place of the event; silent about its value"
)
case = surface(
    "status_page", SPEC, DOC, level="behaviour", profiles="5.18..6.3", isolation="global"
)


@case(spec="user_event_parse")
def test_index_counts(ue: UserEvents) -> None:
    """Events get numbers from 1 on in the order of creation."""
    data = ue.open_data()
    assert [data.register(name).place for name in ("c", "a", "b", "x u32 a", "")] == [1, 2, 3, 4, 5]


@case(spec="user_event_parse", level="contract")
@doc("Registering: status_index, since 6.1 status_bit, is the place of the event;")
@doc("write_index is valid for its descriptor")
def test_index_of_an_event(ue: UserEvents) -> None:
    """An event has one status index for all its registrations, and a write index per descriptor."""
    first, second = ue.open_data(), ue.open_data()
    other = ue.new_process().open_data()
    for name in ("a", "b", "c"):
        first.register(name)
    seen = [each.register("c") for each in (first, second, other)]
    assert [each.place for each in seen] == [3, 3, 3]
    assert [each.index for each in seen] == [2, 0, 0]


@case(spec="user_event_parse", tier="full")
def test_index_in_a_child(ue: UserEvents) -> None:
    """A forked child gets the same numbers as its parent, on a shared descriptor and its own."""
    data = ue.register("a")
    assert data.register("b").place == 2
    child = ue.fork(ue.process)
    assert data.of(child).register("b").place == 2
    assert child.open_data().register("a").place == 1
    assert child.open_data().register("c").place == 3


@case(spec="find_user_event")
@variants(
    ("same", " u32 a"),
    ("none", ""),
    ("other", " u64 b; u8 c"),
    ("flags", ":FLAG u32 a"),
    # They are not parsed.
    ("bad-type", " long a"),
    ("no-name", " u32"),
)
def test_index_of_an_existing_name(ue: UserEvents, fields: str) -> None:
    """For an existing name its number is returned, whatever the fields, and none is used up."""
    data = ue.register("b u32 a", "e u32 a")
    again = data.register(f"e{fields}")
    assert (again.errno, again.place, again.index) == ("", 2, 1)
    assert data.register("next").place == 3
    assert ue.tracefs.dynamic_events(whole=True) == "u:b u32 a\nu:e u32 a\nu:next\n"


@case
@doc("Overview: dynamic_events takes the format of the ioctl; silent about places in the status")
def test_index_by_dynamic_events(ue: UserEvents) -> None:
    """An event created through dynamic_events uses a number as well, and shows in the page."""
    page = map_page(ue.process)
    assert ue.tracefs.command("u:a\nu:b u32 x\n").errno == ""
    data = ue.open_data()
    assert (data.register("c").place, data.register("b u32 x").place) == (3, 2)
    ue.tracefs.enable("a")
    assert [page.shows(place) for place in (1, 2, 3)] == [1, 0, 0]


@case(spec="user_event_parse", level="detail")
@variants(
    ("bad-type", "x long a", "EINVAL"),
    ("bad-array", "x char[0] a", "EINVAL"),
    ("no-name", "x u32", "EINVAL"),
    ("second-field", "x u32 a; u32", "EINVAL"),
    ("struct-of-minus-one", "x struct s a 4294967295", "EPERM"),
    ("too-long", "x" * 512, "EINVAL"),
)
def test_index_not_burnt(ue: UserEvents, definition: str, errno: str) -> None:
    """A rejected registration uses no number and returns none."""
    data = ue.register("a")
    seen = data.register(definition)
    assert (seen.errno, seen.place, seen.index) == (errno, UNTOUCHED, UNTOUCHED)
    assert data.register("b").place == 2


@case(level="detail", tier="full")
def test_index_not_burnt_by_lines(ue: UserEvents) -> None:
    """A rejected line of dynamic_events uses no number; the lines before it keep theirs."""
    assert ue.tracefs.command("u:a\nu:b\nu:c long x\nu:d\n").errno == "EINVAL"
    assert ue.open_data().register("e").place == 3


@case(spec="user_events_release")
def test_index_after_close(ue: UserEvents) -> None:
    """An event keeps its number while it exists, registered or not."""
    holder = ue.new_process()
    holder.open_data().register("a")
    holder.exit()
    data = ue.open_data()
    assert data.register("b").place == 2
    data.close()
    data = ue.open_data()
    assert [data.register(name).place for name in ("c", "b", "a")] == [3, 2, 1]


@case(spec="destroy_user_event")
@variants({"ioctl": True, "dynamic-events": False})
def test_index_free_again(ue: UserEvents, by: bool) -> None:
    """The number of a deleted event goes to the next new one."""
    ue.tracefs.command("u:a\nu:b\nu:c\n")
    data = ue.open_data()
    assert (data.delete("b") if by else ue.tracefs.command("-:b\n")).errno == ""
    assert (data.register("x").place, data.register("y").place) == (2, 4)


@case(spec="user_event_parse", level="detail")
@variants(
    ("descending", ("i", "g", "b")), ("ascending", ("b", "g", "i")), ("mixed", ("g", "i", "b"))
)
def test_index_lowest_first(ue: UserEvents, deleted: tuple[str, ...]) -> None:
    """The lowest free number is used first, whenever it was freed."""
    ue.tracefs.command("".join(f"u:{name}\n" for name in "abcdefghij"))
    data = ue.open_data()
    for name in deleted:
        data.delete(name)
    assert [data.register(name).place for name in ("w", "x", "y", "z")] == [2, 7, 9, 11]


@case(spec="trace_dynevent.c:dyn_events_release_all", level="detail", tier="full")
def test_index_after_everything(ue: UserEvents) -> None:
    """After all events are deleted at once, numbers start from 1 again."""
    ue.tracefs.command("u:a\nu:b\nu:c\n")
    assert ue.tracefs.command("", os.O_WRONLY | os.O_TRUNC).errno == ""
    data = ue.open_data()
    assert (data.register("z").place, data.register("a").place) == (1, 2)


@case(spec="delete_user_event", tier="full")
def test_index_kept_while_busy(ue: UserEvents) -> None:
    """A deletion that fails with EBUSY frees no number."""
    data = ue.register("a")
    assert data.delete("a").errno == "EBUSY"
    assert ue.tracefs.command("-:a\n").errno == "EBUSY"
    assert (data.register("b").place, data.register("a").place) == (2, 1)
