"""States as bytes, to compare and to copy them."""

from __future__ import annotations

import pickle

from conformance.model.state.world import World


def frozen(world: World) -> bytes:
    """The bytes of a state; equal states have equal ones."""
    # Older protocols encode pages less compactly, and more slowly.
    return pickle.dumps(world, pickle.HIGHEST_PROTOCOL)


def thawed(state: bytes) -> World:
    """A state of its own."""
    world: World = pickle.loads(state)
    return world


def copied(world: World) -> World:
    """A copy of a state."""
    return thawed(frozen(world))
