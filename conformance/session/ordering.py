"""In which order cases run: what needs a new system first, then the longest; or by chance.

Cases that end their guest go last: nobody needs another one behind the last of them.

How long a case took is remembered per kernel, in the cache directory: a guess for the next run.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from conformance.cases.case import Case, Isolation
from host.files import write_atomically

Item = TypeVar("Item")

# What a case is thought to take that has never run, in seconds.
_UNKNOWN = 0.05
# What another guest takes, roughly, in seconds.  Longer cases would keep the others waiting.
_RENEWAL = 1.0
_SHARED = (Isolation.GLOBAL, Isolation.FATAL)


@dataclass(frozen=True, slots=True)
class CaseHistory:
    """What is known of cases, by their ids, before a run begins or goes on.

    ``seconds`` is what they took when they last ran; ``ended`` have ended, before the run was
    killed; it may have died of the ``suspects``, which were running then.
    """

    seconds: Mapping[str, float]
    ended: Sequence[str] = ()
    suspects: Sequence[str] = ()


class Durations:
    """The seconds that each case took when it last ran on a kernel."""

    def __init__(self, cache: Path, kernel_id: str) -> None:
        self._file = cache / "durations" / f"{kernel_id}.json"

    def read(self) -> dict[str, float]:
        """Case id to seconds; nothing where nothing can be read."""
        try:
            return {str(name): float(s) for name, s in json.loads(self._file.read_text()).items()}
        except (OSError, ValueError, AttributeError, TypeError, OverflowError, RecursionError):
            return {}

    def remember(self, seconds: Mapping[str, float]) -> None:
        """Add what a run measured.  It is a guess: one that cannot be written is left out."""
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._file, json.dumps({**self.read(), **seconds}))


def ordered(
    items: Sequence[Item],
    case_of: Callable[[Item], tuple[Case, str]],
    history: CaseHistory,
    seed: int | None = None,
) -> list[Item]:
    """The items that have not ended in the order to run them, by a ``seed`` if there is one.

    Suspects go last: were it chance that the run died in one, it is not chance twice.
    Cases that begin on a system without events come one after the other, so that the system
    has to be emptied once; those that want two processors go last.  Of the others the longest
    come first: guests side by side then end at about the same time.  Those that take a guest with
    them and do not take long come behind.  The very first is the shortest of those that may be:
    whoever waits sees soon that there are results.
    """
    found = list(items)
    if seed is not None:
        random.Random(seed).shuffle(found)
    gone, last = frozenset(history.ended), frozenset(history.suspects)

    def key(item: Item) -> tuple[bool, int, bool, bool, float]:
        case, case_id = case_of(item)
        suspected = case_id in last
        if seed is not None:
            return suspected, 0, False, False, 0.0
        seconds = history.seconds.get(case_id, _UNKNOWN)
        ending = case.isolation is Isolation.FATAL and seconds < _RENEWAL
        return suspected, case.processors, ending, case.isolation not in _SHARED, -seconds

    order = sorted((item for item in found if case_of(item)[1] not in gone), key=key)
    if seed is None and order:
        *kind, _ = key(order[0])
        alike = sum(kind == [*key(item)[:-1]] for item in order)
        order.insert(0, order.pop(alike - 1))
    return order
