"""The choices of a random program: recorded, repeated, shortened.

A program is a sequence of actions, each a sequence of numbers.  What a number means depends on
the state that the earlier actions have produced, so every sequence of numbers is a program: one
that lost some actions as well.  0 is the most ordinary choice everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")
Actions = tuple[tuple[int, ...], ...]
# Factors of weights.
_MIX = (0, 1, 1, 1, 5)


class Choices:
    """Choices of a given program first, then ``more`` actions of random ones, then the ``last``."""

    def __init__(
        self,
        random: Random,
        given: Sequence[Sequence[int]] = (),
        more: int = 0,
        last: Sequence[Sequence[int]] = (),
    ) -> None:
        self._random = random
        # None is an action whose choices are random.
        self._program: list[Sequence[int] | None] = [*given, *more * [None], *last]
        self._made: list[list[int]] = []

    @property
    def actions(self) -> Actions:
        """The choices so far."""
        return tuple(map(tuple, self._made))

    def next_action(self) -> bool:
        """Begin another action, if there is one."""
        if len(self._made) == len(self._program):
            return False
        self._made.append([])
        return True

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit`` - 1; 0 where a given action has no more numbers."""
        return self._next(limit, lambda: self._random.randrange(limit))

    def weighted(self, weights: Sequence[int]) -> int:
        """The index of a weight; a random one as often as the weight says."""
        return self._next(
            len(weights), lambda: self._random.choices(range(len(weights)), weights)[0]
        )

    def mixed(self, weights: Sequence[int]) -> list[int]:
        """Weights of which some dominate and some are 0, for the random actions of one program."""
        mixed = [each * self._random.choice(_MIX) for each in weights]
        return mixed if any(mixed) else list(weights)

    def _next(self, limit: int, draw: Callable[[], int]) -> int:
        made = self._made[-1]
        given = self._program[len(self._made) - 1]
        if given is None:
            number = draw()
        else:
            number = given[len(made)] % limit if len(made) < len(given) else 0
        made.append(number)
        return number

    def of(self, options: Sequence[T]) -> T:
        """One of several."""
        return options[self.below(len(options))]

    def late(self, options: Sequence[T]) -> T:
        """One of several, mostly the last."""
        return options[-1] if not self.rarely(2) else self.of(options)

    def rarely(self, one_in: int) -> bool:
        """True once in ``one_in`` times."""
        return self.below(one_in) == one_in - 1
