"""Serialising programs: JSON for evidence, and a digest that knows what is incidental."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from conformance.ops.operation import Operation

# Names that programs make up themselves look like t00012_name (see sut.user_events); the
# tracepoint of a multi-format event has a number behind it that the whole system counts.
_GENERATED = re.compile(r"\b(t)\d+(_[\w-]*)(?:\.([0-9a-f]+)\b)?", re.IGNORECASE)

COURSE = 200
"""Operations of a program that its course tells of."""


def digest(program: Iterable[Operation]) -> str:
    """SHA-256 of what a program does, whatever else has run in its guest.

    Generated event names are reduced to their stems, and the numbers of multi-format
    events to the order in which they come up.  Actors, slots and addresses need no such
    care: programs number them from the start every time.
    """
    return identify(program)[0]


def identify(program: Iterable[Operation]) -> tuple[str, str]:
    """The digest of a program, and its course: two digits of the digest after each operation.

    A program that ended early has the beginning of the course of the whole.  Only the first
    operations have a part in it: a storm has thousands.
    """
    summary = hashlib.sha256()
    names = _Names()
    course = ""
    for number, operation in enumerate(program):
        text = json.dumps(names.reduced(operation.encode()), sort_keys=True)
        summary.update(text.encode() + b"\n")
        if number < COURSE:
            course += summary.hexdigest()[:2]
    return summary.hexdigest(), course


class _Names:
    """The generated names of one program."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def reduced(self, shown: dict[str, Any]) -> dict[str, Any]:
        """An encoded operation without what is incidental in its names."""
        return {key: self._plain(value) for key, value in shown.items()}

    def _plain(self, value: Any) -> Any:
        if isinstance(value, str):
            return _GENERATED.sub(self._stem, value)
        if isinstance(value, list):
            # What the tasks of a race do.
            return [self._plain(each) for each in value]
        if isinstance(value, dict) and value.keys() == {"hex"}:
            text = bytes.fromhex(value["hex"]).decode("latin-1")
            return {"hex": _GENERATED.sub(self._stem, text).encode("latin-1").hex()}
        return self.reduced(value) if isinstance(value, dict) else value

    def _stem(self, found: re.Match[str]) -> str:
        if found[3] is None:
            return found[1] + found[2]
        number = self._numbers.setdefault(found[3], len(self._numbers))
        return f"{found[1]}{found[2]}.{number:x}"
