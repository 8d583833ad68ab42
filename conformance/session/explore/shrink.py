"""Shorten a program as long as it shows the same difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from conformance.session.explore.choices import Actions


def shrink(actions: Actions, shows: Callable[[Actions], bool], most: int) -> Actions:
    """The shortest program found with at most ``most`` tries; ``shows`` runs one."""
    tries = most
    while tries > 0:
        for shorter in _shorter(actions):
            tries -= 1
            if shows(shorter):
                actions = shorter
                break
            if tries <= 0:
                break
        else:
            break
    return actions


def _shorter(actions: Actions) -> Iterator[Actions]:
    """Simpler programs, the much simpler ones first."""
    length = len(actions) // 2
    while length:
        # What comes last is needed most often: the difference is there.
        for start in range(0, len(actions) - length + 1, length):
            yield actions[:start] + actions[start + length :]
        length //= 2
    for at, action in enumerate(actions):
        for place, number in enumerate(action):
            # The first number says which action it is.
            if place and number:
                simpler = (*action[:place], 0, *action[place + 1 :])
                yield (*actions[:at], simpler, *actions[at + 1 :])
