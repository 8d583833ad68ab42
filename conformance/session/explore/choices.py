"""The choices of a random program: recorded, repeated, shortened.

A program is a sequence of actions, each a sequence of numbers.  What a number means depends on
the state that the earlier actions have produced, so every sequence of numbers is a program: one
that lost some actions as well.  0 is the most ordinary choice everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")
Actions = tuple[tuple[int, ...], ...]


class Choices:
    """Choices of a given program first, then ``more`` actions of random ones."""

    def __init__(self, random: Random, given: Sequence[Sequence[int]] = (), more: int = 0) -> None:
        self._random = random
        self._given = given
        self._length = len(given) + more
        self._made: list[list[int]] = []

    @property
    def actions(self) -> Actions:
        """The choices so far."""
        return tuple(map(tuple, self._made))

    def next_action(self) -> bool:
        """Begin another action, if there is one."""
        if len(self._made) == self._length:
            return False
        self._made.append([])
        return True

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit`` - 1; 0 where a given action has no more numbers."""
        made = self._made[-1]
        at = len(self._made) - 1
        if at >= len(self._given):
            number = self._random.randrange(limit)
        elif len(made) < len(self._given[at]):
            number = self._given[at][len(made)] % limit
        else:
            number = 0
        made.append(number)
        return number

    def of(self, options: Sequence[T]) -> T:
        """One of several."""
        return options[self.below(len(options))]

    def rarely(self, one_in: int) -> bool:
        """True once in ``one_in`` times."""
        return self.below(one_in) == one_in - 1
