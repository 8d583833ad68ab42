"""Hide the user events of other programs from what the suite reads and compares."""

from __future__ import annotations

import re
from collections.abc import Collection

from conformance.abi import grammar
from conformance.client.tracefs import DYNAMIC_EVENTS, STATUS

#: The totals at the end of user_events_status.
_TOTAL = re.compile(r"(Active|Busy|Max): (\d+)")
_USED = " # Used by"
#: Before 6.4 a line of user_events_status begins with the place of the event.
_PLACE = re.compile(r"^\d+:")
FILES = frozenset({DYNAMIC_EVENTS, STATUS})
"""The files that list the events of all programs."""


def event_of(line: str) -> str:
    """The name of the user event of a line of one of ``FILES``, "" if it has none."""
    if line.startswith(grammar.PREFIX):
        return line.removeprefix(grammar.PREFIX).partition(" ")[0]
    return "" if _TOTAL.fullmatch(line) else _PLACE.sub("", line).partition(" ")[0]


def without_events(shown: str, names: Collection[str]) -> str:
    """The text of one of ``FILES`` without these events, and with totals that fit."""
    kept = []
    active = busy = 0
    for line in shown.splitlines(keepends=True):
        if event_of(line.rstrip("\n")) in names:
            active += 1
            busy += _USED in line
            continue
        kept.append(line)
    fewer = {"Active": active, "Busy": busy, "Max": 0}
    return "".join(
        f"{found[1]}: {int(found[2]) - fewer[found[1]]}\n"
        if (found := _TOTAL.fullmatch(line.rstrip("\n")))
        else line
        for line in kept
    )
