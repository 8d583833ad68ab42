"""What a random program may do: actions, and how often each comes.

An action takes what it needs from the scene, and makes it if there is none.  Arguments are mostly
valid, seldom nearly valid or hostile.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from conformance.client.user_events import UserEvents
from conformance.session.explore import ending, events, listeners, tasks
from conformance.session.explore.call_log import LoggedObject
from conformance.session.explore.choices import Actions, Choices
from conformance.session.explore.corpus import Feature, states
from conformance.session.explore.scene import Crowded, Scene


def meanwhile(scene: Scene) -> None:
    """Something happens while an event is enabled in ftrace."""
    system, name = scene.event()
    scene.ue.tracefs.enable(name, system=system)
    scene.choices.of(_MEANWHILE)(scene)
    scene.settle()
    scene.ue.tracefs.disable(name, system=system)


_MEANWHILE = (tasks.fork, tasks.memory, events.again, events.unregister, tasks.end, events.write)
_ACTIONS: tuple[tuple[int, Callable[[Scene], None]], ...] = (
    (10, events.register),
    (5, events.again),
    (8, events.write),
    (8, listeners.switch),
    (6, events.unregister),
    (3, events.delete),
    (2, events.open_data),
    (3, events.close),
    (1, events.dup),
    (5, tasks.fork),
    (2, tasks.end),
    (6, tasks.memory),
    (4, tasks.burst),
    (6, meanwhile),
    (3, listeners.perf),
    (1, listeners.filter_event),
    (2, events.command),
    (2, listeners.look),
    (1, events.many),
    (1, events.hostile),
    (1, ending.look_at_all),
    (1, ending.switch_all),
    (1, ending.unregister_all),
    (0, ending.end_all),
    (0, ending.close_all),
)
# Pieces of deferred work that may still be pending when the next action begins.
_PENDING = (0, 0, 0, 0, 0, 1)
_WEIGHTS = [weight for weight, _ in _ACTIONS]
_ENDING = (
    ending.switch_all,
    ending.look_at_all,
    ending.unregister_all,
    ending.end_all,
    ending.unregister_all,
    ending.switch_all,
    ending.close_all,
)
#: The last actions of every new program.
ENDING: Actions = tuple(([action for _, action in _ACTIONS].index(each),) for each in _ENDING)


def walk(user_events: UserEvents, choices: Choices, lines: list[str]) -> set[Feature]:
    """Perform the actions of some choices; ``lines`` gets the calls of the client as text.

    A program ends early if a guest cannot have as many processes as it needs.
    Returns the states that the actions have reached.
    Raises what the client raises: Divergence, and NotModelled.
    """
    scene = Scene(LoggedObject(user_events, "ue", lines, user_events.prefix), choices)
    weights = choices.mixed(_WEIGHTS)
    reached: set[Feature] = set()
    with suppress(Crowded):
        while choices.next_action():
            _, action = _ACTIONS[choices.weighted(weights)]
            action(scene)
            # Each piece of pending work doubles the states that the model allows.
            scene.settle(above=choices.of(_PENDING))
            reached |= states(action.__name__, scene.world)
    return reached
