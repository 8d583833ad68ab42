"""Run a case on the model, for its program."""

from __future__ import annotations

from conformance import ops
from conformance.abi.profile import Profile
from conformance.cases.variants import Variant
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.recording import record
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.repro.errors import NotExpressible
from conformance.results.recorded_program import RecordedStep

# Half of the ids that all events share.
_MOST_EVENTS = 32767


def program_of(variant: Variant, profile: Profile, serial: int = 1) -> tuple[RecordedStep, ...]:
    """The operations of a case with the answers that the model allows.

    ``serial`` tells the event names of several programs apart.  Raises what the case raises, and
    NotExpressible if the operations depend on how many ids the kernel has left.
    """
    lockstep = Lockstep(Model(profile), ModelExecutor(Model(profile)))
    variant.function(UserEvents(lockstep, serial), **variant.arguments)
    commands = (each.data for each in lockstep.program if isinstance(each, ops.WriteFile))
    if sum(data.count(b"u:") for data in commands) > _MOST_EVENTS:
        why = "it uses up all ids, and how many a kernel has left only a run tells"
        raise NotExpressible(f"{why}: uevt repro RUN")
    return record(lockstep)
