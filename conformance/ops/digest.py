"""Digest of a program: equal for equal programs, whatever has run in the guest before."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from conformance.ops.operation import Operation

# Generated event names look like t00012_name (see client.user_events); the tracepoint of a
# multi-format event ends in a number that the whole system counts.
_GENERATED = re.compile(r"\b(t)\d+(_[\w-]*)(?:\.([0-9a-f]+)\b)?", re.IGNORECASE)

COURSE_OPERATIONS = 200
"""Operations of a program that its course tells of."""


def digest(program: Iterable[Operation]) -> str:
    """SHA-256 of the operations of a program.

    Generated event names are reduced to their stems, and the numbers of multi-format events to
    their order of appearance.  Actors, slots and addresses start from the same values in every
    program.
    """
    return digest_and_course(program)[0]


def digest_and_course(program: Iterable[Operation]) -> tuple[str, str]:
    """The digest of a program and its course: two digits of the digest after each operation.

    A program that ended early has a prefix of the full program's course.  Only the first operations
    count; stress programs have thousands.
    """
    summary = hashlib.sha256()
    names = _Names()
    course = ""
    for number, operation in enumerate(program):
        text = json.dumps(names.reduced(operation.encode()), sort_keys=True)
        summary.update(text.encode() + b"\n")
        if number < COURSE_OPERATIONS:
            course += summary.hexdigest()[:2]
    return summary.hexdigest(), course


class _Names:
    """Generated names of one program."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def reduced(self, encoded: dict[str, Any]) -> dict[str, Any]:
        """An encoded operation with names reduced."""
        return {key: self._plain(value) for key, value in encoded.items()}

    def _plain(self, value: Any) -> Any:
        if value is None or isinstance(value, int):
            return value
        if isinstance(value, str):
            return _GENERATED.sub(self._stem, value)
        if isinstance(value, list):
            # The tracks of a race.
            return [self._plain(each) for each in value]
        if isinstance(value, dict) and value.keys() == {"hex"}:
            text = bytes.fromhex(value["hex"]).decode("latin-1")
            return {"hex": _GENERATED.sub(self._stem, text).encode("latin-1").hex()}
        return self.reduced(value)

    def _stem(self, found: re.Match[str]) -> str:
        if found[3] is None:
            return found[1] + found[2]
        number = self._numbers.setdefault(found[3], len(self._numbers))
        return f"{found[1]}{found[2]}.{number:x}"
