"""The status page while events and their programs come and go."""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.status_page import map_page

SPEC = "user_event_parse"
DOC = "@v5.19 and @v6.1: Status: the status is updated in real time as tools attach and detach"
case = surface("status_page", SPEC, DOC, level="contract", profiles="5.18..6.3")


@case(spec="update_reg_page_for")
def test_enabled_before_mapped(ue: UserEvents) -> None:
    """A page mapped later shows at once which events are enabled."""
    place = ue.event(enabled=True).place
    assert map_page(ue.process).shows(place) == 1


@case
@variants({"program": True, "dynamic-events": False})
def test_enabled_before_registered(ue: UserEvents, by: bool) -> None:
    """Registering an enabled event returns an index whose byte is set."""
    page = map_page(ue.process)
    if by:
        ue.new_process().open_data().register(ue.name())
    else:
        ue.tracefs.command(f"u:{ue.name()}\n")
    ue.tracefs.enable(ue.name())
    data = ue.open_data()
    assert page.shows(data.register(ue.name()).place) == 1
    ue.tracefs.disable(ue.name())
    assert page.shows(data.register(ue.name()).place) == 0


@case(doc="Registering: silent about a name that is in use", level="behaviour", tier="full")
def test_registered_again(ue: UserEvents) -> None:
    """Registering an enabled event again does not change the page."""
    page = map_page(ue.process)
    event = ue.event(enabled=True)
    assert event.data.register(ue.name()).place == event.place
    assert event.data.register(f"{ue.name()} u32 other").place == event.place
    assert page.shows(event.place) == 1


@case(spec="user_events_release")
@variants({"closes": False, "exits": True})
def test_registrant_gone(ue: UserEvents, exits: bool) -> None:
    """An enabled event without registrations still shows as enabled."""
    page = map_page(ue.process)
    registrant = ue.new_process()
    event = ue.event(enabled=True, of=registrant)
    assert (registrant.exit() if exits else event.data.close()).errno == ""
    assert page.shows(event.place) == 1
    ue.tracefs.disable(ue.name())
    assert page.shows(event.place) == 0


@case(spec="delete_user_event, user_event_free")
@doc("Deleting: succeeds only if no references are left in user and kernel space")
@variants({"ioctl": True, "dynamic-events": False})
def test_enabled_cannot_go(ue: UserEvents, by: bool) -> None:
    """An enabled event cannot be deleted, and its byte stays set."""
    page = map_page(ue.process)
    data, deleting = ue.open_data(), ue.open_data()
    place = data.register(ue.name()).place
    ue.tracefs.enable(ue.name())
    data.close()
    busy = deleting.delete(ue.name()) if by else ue.tracefs.command(f"-:{ue.name()}\n")
    assert busy.errno == "EBUSY"
    assert page.shows(place) == 1
    ue.tracefs.disable(ue.name())
    assert deleting.delete(ue.name()).value == 0
    assert page.shows(place) == 0


@case(doc="Status: silent about programs that keep the place of a deleted event", level="behaviour")
def test_old_place_of_another(ue: UserEvents) -> None:
    """An index outlives its event: it then shows the state of the next event that uses it."""
    page = map_page(ue.process)
    event = ue.event(name="old")
    event.data.close()
    ue.open_data().delete(ue.name("old"))
    assert ue.new_process().open_data().register(ue.name("new")).place == event.place
    assert page.shows(event.place) == 0
    ue.tracefs.enable(ue.name("new"))
    assert page.shows(event.place) == 1


@case(spec="destroy_user_event", level="behaviour", tier="full")
@doc("Status: silent about what a deleted event leaves")
def test_same_name_again(ue: UserEvents) -> None:
    """An event that is deleted and registered again starts disabled."""
    page = map_page(ue.process)
    event = ue.event(enabled=True)
    event.disable()
    event.data.close()
    again = ue.open_data()
    assert again.delete(ue.name()).value == 0
    assert again.register(ue.name()).place == event.place
    assert page.shows(event.place) == 0
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
