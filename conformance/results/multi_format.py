"""Number the tracepoints of multi-format events as a freshly booted kernel does.

Their names end in a number that the whole system counts (trace_events_user.c:
user_event_set_tp_name).  A recorded program that begins with another number finds other names when
it runs again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from conformance.results.recorded_program import RecordedAnswer, RecordedStep

# Generated names look like t00012_name.
_NUMBERED = re.compile(r"\b(t\d+_[\w-]*)\.([0-9a-f]+)\b")


def from_zero(program: Sequence[RecordedStep]) -> tuple[RecordedStep, ...]:
    """The program with the smallest number being 0; the same if it has none."""
    texts = [text for step in program for text in _texts(step)]
    numbers = [int(found[2], 16) for text in texts for found in _NUMBERED.finditer(text)]
    first = min(numbers, default=0)
    if not first:
        return tuple(program)

    def renumbered(text: str) -> str:
        return _NUMBERED.sub(lambda found: f"{found[1]}.{int(found[2], 16) - first:x}", text)

    return tuple(_step(step, renumbered) for step in program)


def _texts(step: RecordedStep) -> list[str]:
    data = [answer.data for answer in step.allowed if answer.data]
    return [json.dumps(step.operation), *map(_decoded, data)]


def _decoded(data: str) -> str:
    return bytes.fromhex(data).decode("latin-1")


def _step(step: RecordedStep, renumbered: Callable[[str], str]) -> RecordedStep:
    return replace(
        step,
        operation=_value(step.operation, renumbered),
        allowed=tuple(_answer(each, renumbered) for each in step.allowed),
        seen=None if step.seen is None else _answer(step.seen, renumbered),
    )


def _value(value: Any, renumbered: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return renumbered(value)
    if isinstance(value, list):
        # The tracks of a race, and their steps.
        return [_value(each, renumbered) for each in value]
    if isinstance(value, dict) and value.keys() == {"hex"}:
        return {"hex": renumbered(_decoded(value["hex"])).encode("latin-1").hex()}
    if isinstance(value, dict):
        return {name: _value(each, renumbered) for name, each in value.items()}
    return value


def _answer(answer: RecordedAnswer, renumbered: Callable[[str], str]) -> RecordedAnswer:
    if answer.data is None:
        return answer
    data = renumbered(_decoded(answer.data)).encode("latin-1").hex()
    whole = answer.value == len(answer.data) // 2
    return replace(answer, data=data, value=len(data) // 2 if whole else answer.value)
