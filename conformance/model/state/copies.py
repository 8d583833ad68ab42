"""States as bytes, to compare and to copy them; they are of use in this process only."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable

from conformance.abi.profile import Profile
from conformance.model.state.world import World

# Profiles by identity.  Every part of a state refers to one, and a copy of its set of switches has
# another order, and so other bytes.
_profiles: dict[int, Profile] = {}


def _reference(profile: Profile) -> tuple[Callable[[int], Profile], tuple[int]]:
    _profiles[id(profile)] = profile
    return _profile, (id(profile),)


def _profile(identity: int) -> Profile:
    return _profiles[identity]


def frozen(world: World) -> bytes:
    """The bytes of a state; equal states have equal ones."""
    file = io.BytesIO()
    # Older protocols encode pages less compactly, and more slowly.
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {type(world.profile): _reference}
    pickler.dump(world)
    return file.getvalue()


def thawed(state: bytes) -> World:
    """A state of its own."""
    world: World = pickle.loads(state)
    return world


def copied(world: World) -> World:
    """A copy of a state."""
    return thawed(frozen(world))
