"""Run a case on the model, for its program."""

from __future__ import annotations

from conformance.abi.profile import Profile
from conformance.cases.variants import Variant
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.recording import record
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.results.recorded_program import RecordedStep


def program_of(variant: Variant, profile: Profile, serial: int = 1) -> tuple[RecordedStep, ...]:
    """The operations of a case with the answers that the model allows.

    ``serial`` tells the event names of several programs apart.  Raises what the case raises.
    """
    lockstep = Lockstep(Model(profile), ModelExecutor(Model(profile)))
    variant.function(UserEvents(lockstep, serial), **variant.arguments)
    return record(lockstep)
