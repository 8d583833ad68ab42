"""What the model of the first version leaves open, and what it does not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.abi.profile import profile_for
from conformance.cases.support.rfc_v1 import bound, listened, page_of
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.perf import COUNTING, listen
from conformance.client.rfc_v1 import register
from conformance.client.tracefs import DYNAMIC_EVENTS
from conformance.client.user_events import UserEvents
from conformance.model.errors import NotModelled
from conformance.model.machine import Model
from conformance.ops.syscalls import Load, Observation, Operation, ReadFile, Watch

PROFILE = profile_for("rfc-v1")


class Dirty(ModelExecutor):
    """A kernel whose page holds what it is told, as long as nothing is said about it."""

    def __init__(self, bytes_seen: Sequence[int], lines: Sequence[str] = ()) -> None:
        super().__init__(Model(PROFILE))
        self._bytes = list(bytes_seen)
        self._lines = list(lines)

    def _perform(self, operation: Operation, watches: Sequence[Watch]) -> Observation:
        if isinstance(operation, Load) and self._bytes:
            return Observation(1, "", bytes([self._bytes.pop(0)]))
        seen = super()._perform(operation, watches)
        if isinstance(operation, ReadFile) and operation.path == DYNAMIC_EVENTS and self._lines:
            return Observation(0, "", self._lines.pop(0).encode())
        return seen


def system(*bytes_seen: int, lines: Sequence[str] = ()) -> UserEvents:
    """user_events of a kernel with such a page."""
    return UserEvents(Lockstep(Model(PROFILE), Dirty(bytes_seen, lines)), serial=1)


def looked(ue: UserEvents, times: int) -> UserEvents:
    """The same after the byte of a new event was looked at."""
    page = page_of(ue.process)
    place = register(ue.open_data(), ue.name()).value
    for _ in range(times):
        page.load(place)
    return ue


@pytest.mark.parametrize("byte", [0, 1, 0x5A, 0xFF])
def test_any_byte_will_do_at_first(byte: int) -> None:
    assert looked(system(byte, byte), 2).lockstep.mismatches == []


def test_a_byte_that_was_seen_does_not_change_by_itself() -> None:
    (step,) = looked(system(0x5A, 0x5B), 2).lockstep.mismatches
    assert [found.field for found in step.differences] == ["data"]


def test_a_byte_that_was_seen_is_shown_in_words() -> None:
    used = "ue:t00001_e (Used by perf)\n"
    ue = looked(system(0x02, lines=[used, "ue:t00001_e\n"]), 1)
    assert ue.tracefs.dynamic_events() == used
    assert ue.lockstep.mismatches == []
    ue.tracefs.dynamic_events()
    assert len(ue.lockstep.mismatches) == 1


def test_of_an_unseen_byte_nothing_is_said_but_the_definition_is_compared() -> None:
    ue = looked(system(lines=["ue:t00001_e (Used by other)\n", "ue:t00001_f\n"]), 0)
    ue.tracefs.dynamic_events()
    assert ue.lockstep.mismatches == []
    ue.tracefs.definitions()
    assert len(ue.lockstep.mismatches) == 1


def test_a_byte_is_known_once_somebody_listened() -> None:
    ue = looked(system(), 0)
    ue.tracefs.enable(ue.name())
    ue.tracefs.disable(ue.name())
    lying = "ue:t00001_e (Used by other)\n"
    assert isinstance(ue.lockstep._executor, Dirty)
    ue.lockstep._executor._lines.append(lying)
    ue.tracefs.dynamic_events()
    assert len(ue.lockstep.mismatches) == 1


def test_a_stuck_buffer_hides_what_comes_on_its_processor_and_is_not_cleared() -> None:
    ue = system()
    data = listened(ue)
    ue.process.pin(0)
    assert data.write(b"a").value == 1
    assert data.write_at(0, 8).value == 8
    assert data.write(b"b").value == 1
    ue.process.pin(1)
    assert data.write(b"c").value == 1
    assert ue.tracefs.records() == ["61", "63"]
    with pytest.raises(NotModelled, match="never committed"):
        ue.tracefs.clear_trace()


def test_perf_gets_stuck_on_a_processor_that_is_known() -> None:
    ue = system()
    data = bound(ue, ue.name())
    listen(ue.process, ue.name(), COUNTING)
    with pytest.raises(NotModelled, match="some processor"):
        data.write_at(0, 8)


def test_perf_is_stuck_on_that_processor_alone() -> None:
    ue = system()
    data = bound(ue, ue.name())
    event = listen(ue.process, ue.name(), COUNTING)
    ue.process.pin(0)
    data.write_at(0, 8)
    assert data.write(b"a").value == 1
    assert event.count == 0
    ue.process.pin(1)
    assert data.write(b"a").value == 1
    assert event.count == 1
    stranger = ue.new_process()
    listen(stranger, ue.name(), COUNTING)
    theirs = stranger.open_data()
    register(theirs, ue.name())
    with pytest.raises(NotModelled, match="stuck on one"):
        theirs.write(b"a")


def test_a_dangling_descriptor_is_not_used() -> None:
    ue = system()
    data = ue.open_data()
    register(data, ue.name())
    ue.tracefs.command(f"-:{ue.name()}\n")
    with pytest.raises(NotModelled, match="referenced but removed"):
        data.write(b"x")


def test_the_stack_is_not_guessed() -> None:
    ue = system()
    register(ue.open_data(), ue.name() + ";u32\ta\t4")
    with pytest.raises(NotModelled, match="the offset"):
        ue.tracefs.format(ue.name())
