"""Order cases: those that need a clean system first, then the longest; or shuffle them.

The duration of each case is remembered per kernel in the cache.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from conformance.cases.case import Case, Isolation
from host.files import write_atomically

Item = TypeVar("Item")

#: Assumed duration of a case that never ran, in seconds.
UNKNOWN_S = 0.05
#: Seconds to restore another guest without KVM.  A longer case that ends its guest runs early, so
#: that no worker waits for it at the end.
RENEWAL_S = 1.0
_SHARED = (Isolation.GLOBAL, Isolation.FATAL)


class CaseHistory(Struct, frozen=True):
    """What is known of cases, by id, when a run begins or resumes.

    ``seconds`` are durations of the last run.  In a killed run ``ended`` are complete, and
    ``suspects`` were running.
    """

    seconds: Mapping[str, float]
    ended: Sequence[str] = ()
    suspects: Sequence[str] = ()

    def duration(self, case_id: str) -> float:
        """Seconds of a case, assumed for one that never ran."""
        return self.seconds.get(case_id, UNKNOWN_S)


class Durations:
    """Durations of cases in their last run on a kernel."""

    def __init__(self, cache: Path, kernel_id: str) -> None:
        self._file = cache / "durations" / f"{kernel_id}.json"

    def read(self) -> dict[str, float]:
        """Seconds by case id; empty if the file is unreadable."""
        try:
            return {str(name): float(s) for name, s in json.loads(self._file.read_text()).items()}
        except (OSError, ValueError, AttributeError, TypeError, OverflowError, RecursionError):
            return {}

    def remember(self, seconds: Mapping[str, float]) -> None:
        """Add the durations of a run.  Errors are ignored: they are estimates."""
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._file, json.dumps({**self.read(), **seconds}))


def ordered(
    items: Sequence[Item],
    case_of: Callable[[Item], tuple[Case, str]],
    history: CaseHistory,
    seed: int | None = None,
) -> list[Item]:
    """The items that have not ended, ordered, or shuffled by ``seed``.

    Suspects go last: they may end the run again.  Cases that need a system without events run one
    after another, so that it is emptied once; cases that need another guest (Case.guest) follow.
    Among the others the longest come first, so that all guests finish together, and short cases
    that end their guest come last.  The first of all is a short one, to show a result soon.
    """
    found = list(items)
    if seed is not None:
        random.Random(seed).shuffle(found)
    gone, last = frozenset(history.ended), frozenset(history.suspects)

    def key(item: Item) -> tuple[bool, tuple[int, bool], bool, bool, float]:
        case, case_id = case_of(item)
        suspected = case_id in last
        if seed is not None:
            return suspected, (0, False), False, False, 0.0
        seconds = history.duration(case_id)
        ending = case.isolation is Isolation.FATAL and seconds < RENEWAL_S
        return suspected, case.guest, ending, case.isolation not in _SHARED, -seconds

    order = sorted((item for item in found if case_of(item)[1] not in gone), key=key)
    if seed is None and order:
        *kind, _ = key(order[0])
        alike = sum(kind == [*key(item)[:-1]] for item in order)
        order.insert(0, order.pop(alike - 1))
    return order
