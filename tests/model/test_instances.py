"""Instances: what the model does not know of them."""

from __future__ import annotations

import pytest

from conformance.model.errors import NotModelled
from conformance.model.state.trace_instance import TOP, Instance, Record
from conformance.model.state.world import World
from conformance.model.tracing.instances import reset_after_deletion
from tests.cases.variants import PROFILE

RECORD = Record(1, bytes(10), "p1", None)


def test_the_top_buffer_is_unknown_after_the_first_deletion() -> None:
    world = World.fresh(PROFILE)
    world.instances[TOP] = Instance([RECORD], clear_trace=None)
    reset_after_deletion(world)
    assert world.top.unknown_because
    world.top.reset()
    reset_after_deletion(world)
    world.top.records.append(RECORD)
    reset_after_deletion(world)
    assert not world.top.unknown_because
    assert world.top.records


def test_a_record_of_any_processor_has_no_processor() -> None:
    instance = Instance([RECORD])
    with pytest.raises(NotModelled):
        instance.records_of(0)
    assert instance.records_of(None) == [RECORD]
