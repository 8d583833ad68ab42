"""rfc-v1: uninitialized status bytes, uncommitted records, dangling references."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.abi.profile import profile_for
from conformance.cases.support.rfc_v1 import bound_data, enabled_data, page_of
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.perf import COUNTING, open_perf
from conformance.client.rfc_v1 import register
from conformance.client.tracefs import DYNAMIC_EVENTS
from conformance.client.user_events import UserEvents
from conformance.model.errors import NotModelled
from conformance.model.machine import Model
from conformance.ops import Load, Observation, Operation, ReadFile, Watch

PROFILE = profile_for("rfc-v1")


class UninitializedPage(ModelExecutor):
    """A kernel whose status page has given bytes while the model does not know them."""

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
    """A system with such a status page."""
    return UserEvents(Lockstep(Model(PROFILE), UninitializedPage(bytes_seen, lines)), serial=1)


def with_reads(ue: UserEvents, times: int) -> UserEvents:
    """Register an event and read its byte ``times`` times."""
    page = page_of(ue.process)
    place = register(ue.open_data(), ue.name()).value
    for _ in range(times):
        page.load(place)
    return ue


@pytest.mark.parametrize("byte", [0, 1, 0x5A, 0xFF])
def test_the_first_read_of_a_byte_accepts_any_value(byte: int) -> None:
    assert with_reads(system(byte, byte), 2).lockstep.mismatches == []


def test_a_byte_keeps_its_first_value() -> None:
    (step,) = with_reads(system(0x5A, 0x5B), 2).lockstep.mismatches
    assert [found.field for found in step.differences] == ["data"]


def test_dynamic_events_shows_a_known_byte() -> None:
    used = "ue:t00001_e (Used by perf)\n"
    ue = with_reads(system(0x02, lines=[used, "ue:t00001_e\n"]), 1)
    assert ue.tracefs.dynamic_events() == used
    assert ue.lockstep.mismatches == []
    ue.tracefs.dynamic_events()
    assert len(ue.lockstep.mismatches) == 1


def test_only_the_definition_is_compared_for_an_unknown_byte() -> None:
    ue = with_reads(system(lines=["ue:t00001_e (Used by other)\n", "ue:t00001_f\n"]), 0)
    ue.tracefs.dynamic_events()
    assert ue.lockstep.mismatches == []
    ue.tracefs.definitions()
    assert len(ue.lockstep.mismatches) == 1


def test_a_byte_is_known_after_enabling() -> None:
    ue = with_reads(system(), 0)
    ue.tracefs.enable(ue.name())
    ue.tracefs.disable(ue.name())
    lying = "ue:t00001_e (Used by other)\n"
    assert isinstance(ue.lockstep._executor, UninitializedPage)
    ue.lockstep._executor._lines.append(lying)
    ue.tracefs.dynamic_events()
    assert len(ue.lockstep.mismatches) == 1


def test_an_uncommitted_record_hides_later_ones_on_its_processor() -> None:
    ue = system()
    data = enabled_data(ue)
    ue.process.pin(0)
    assert data.write(b"a").value == 1
    assert data.write_at(0, 8).value == 8
    assert data.write(b"b").value == 1
    ue.process.pin(1)
    assert data.write(b"c").value == 1
    assert ue.tracefs.records() == ["61", "63"]
    with pytest.raises(NotModelled, match="never committed"):
        ue.tracefs.clear_trace()


def test_perf_recursion_affects_one_known_processor() -> None:
    ue = system()
    data = bound_data(ue, ue.name())
    event = open_perf(ue.process, ue.name(), COUNTING)
    with pytest.raises(NotModelled, match="some processor"):
        data.write_at(0, 8)
    ue.process.pin(0)
    data.write_at(0, 8)
    assert data.write(b"a").value == 1
    assert event.count == 0
    ue.process.pin(1)
    assert data.write(b"a").value == 1
    assert event.count == 1
    stranger = ue.new_process()
    open_perf(stranger, ue.name(), COUNTING)
    theirs = stranger.open_data()
    register(theirs, ue.name())
    with pytest.raises(NotModelled, match="stuck on one"):
        theirs.write(b"a")


def test_a_descriptor_of_a_deleted_event_is_not_modelled() -> None:
    ue = system()
    data = ue.open_data()
    register(data, ue.name())
    ue.tracefs.command(f"-:{ue.name()}\n")
    with pytest.raises(NotModelled, match="referenced but removed"):
        data.write(b"x")


def test_an_uninitialized_offset_is_not_modelled() -> None:
    ue = system()
    register(ue.open_data(), ue.name() + ";u32\ta\t4")
    with pytest.raises(NotModelled, match="the offset"):
        ue.tracefs.format(ue.name())
