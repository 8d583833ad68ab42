"""Enable word: the bit follows the tracers of the event.

Several processes, fork and changing memory are in test_memory.
"""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.perf import listen
from conformance.client.user_events import UserEvents

case = surface(
    "enable",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12",
    profiles="6.4..",
    tier="full",
)


@case(spec="user_event_enabler_update", doc="Status: the bit is updated as tools attach and detach")
def test_every_change(ue: UserEvents) -> None:
    """The bit is set when the event is enabled and cleared when it is disabled, each time."""
    word = ue.event(bit=5).word
    seen = []
    for _ in range(3):
        ue.tracefs.enable(ue.name())
        seen.append(word.value)
        ue.tracefs.disable(ue.name())
        seen.append(word.value)
    assert seen == [32, 0, 32, 0, 32, 0]


@case(
    spec="trace_events.c:__ftrace_event_enable_disable",
    doc="Status: silent about enabling what is enabled",
)
def test_twice(ue: UserEvents) -> None:
    """Enabling an enabled event succeeds and adds nothing: one disable clears the bit."""
    word = ue.event(bit=1).word
    assert ue.tracefs.enable(ue.name()).value == 2
    assert ue.tracefs.enable(ue.name()).value == 2
    assert word.value == 2
    assert ue.tracefs.disable(ue.name()).value == 2
    assert word.value == 0
    assert ue.tracefs.disable(ue.name()).value == 2
    assert ue.tracefs.enabled(ue.name()).text == "0\n"


@case(
    spec="user_event_enabler_update runs on changes only",
    doc="Status: the word is ordinary memory of the program",
)
def test_not_restored(ue: UserEvents) -> None:
    """A value that the process stores in its word stays until the event changes again."""
    word = ue.event(bit=0, enabled=True).word
    ue.process.store(word.address, b"\xf0\xff\xff\xff")
    ue.tracefs.enable(ue.name())
    assert word.value == 0xFFFFFFF0
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFF0
    ue.tracefs.enable(ue.name())
    assert word.value == 0xFFFFFFF1


@case(
    spec="user_event_enabler_update: words of the event alone",
    doc="Status: the word is ordinary memory of the program",
)
def test_not_restored_by_others(ue: UserEvents) -> None:
    """A value that the process stores in its word stays when its other events change."""
    data = ue.open_data()
    word = data.register(ue.name()).word
    other = data.register(ue.name("other")).word
    ue.tracefs.enable(ue.name())
    ue.process.store(word.address, b"\0\0\0\0")
    ue.tracefs.enable(ue.name("other"))
    assert (word.value, other.value) == (0, 1)
    ue.tracefs.disable(ue.name("other"))
    assert (word.value, other.value) == (0, 0)


@case(
    spec="user_event_enabler_update runs whenever a listener comes or goes",
    doc="Status: silent about a second tracer",
    facilities="perf",
)
def test_restored_by_each_listener(ue: UserEvents) -> None:
    """The bit is written again when a second tracer attaches and when one of two detaches."""
    word = ue.event(bit=3, enabled=True).word
    ue.process.store(word.address, b"\1\0\0\0")
    event = listen(ue.process, ue.name())
    assert word.value == 9
    ue.process.store(word.address, b"\2\0\0\0")
    event.close()
    assert word.value == 10


@case(spec="user_event_enabler_destroy", doc="Unregistering ends updates of the word")
def test_after_unregister(ue: UserEvents) -> None:
    """An unregistered word no longer changes; other bits still follow the event."""
    data = ue.open_data()
    word = data.register(ue.name(), bit=0).word
    data.register(ue.name(), bit=1, word=word)
    data.unregister(word, bit=0)
    ue.tracefs.enable(ue.name())
    assert word.value == 2
    ue.process.store(word.address, b"\xff\xff\xff\xff")
    ue.tracefs.disable(ue.name())
    assert word.value == 0xFFFFFFFD
