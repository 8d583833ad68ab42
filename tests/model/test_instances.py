"""Instances: reset after a deletion, processors."""

from __future__ import annotations

import pytest

from conformance.model.errors import NotModelled
from conformance.model.state.trace_instance import TOP, Instance, Record
from conformance.model.state.world import World
from conformance.model.tracing.instances import reset_after_deletion
from tests.cases.variants import PROFILE


def full(**settings: bool | None) -> Instance:
    """An instance with one record."""
    return Instance([Record(1, bytes(10), "p1", None)], **settings)  # type: ignore[arg-type]


def test_a_deletion_resets_buffers_that_enabled_the_event() -> None:
    world = World.fresh(PROFILE)
    world.instances.update(was=full(clear_trace=True), never=full(clear_trace=False))
    reset_after_deletion(world)
    assert [len(world.instances[name].records) for name in ("was", "never")] == [0, 1]
    assert not world.instances["was"].clear_trace


def test_the_top_buffer_is_unknown_after_the_first_deletion() -> None:
    world = World.fresh(PROFILE)
    world.instances[TOP] = full(clear_trace=None)
    reset_after_deletion(world)
    assert world.top.unknown_because
    world.top.reset()
    reset_after_deletion(world)
    world.top.records.append(Record(1, bytes(10), "p1", None))
    reset_after_deletion(world)
    assert not world.top.unknown_because
    assert world.top.records


def test_a_record_of_any_processor_has_no_processor() -> None:
    with pytest.raises(NotModelled):
        full().records_of(0)
    assert len(full().records_of(None)) == 1
