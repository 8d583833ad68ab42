"""Serialising programs: JSON for evidence, and a digest that knows what is incidental."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import fields
from enum import Enum
from typing import Any

from conformance.program.operations import Operation

# Names that programs make up themselves look like t00012_name (see sut.user_events).
_GENERATED = re.compile(r"\bt\d+_")


def encode(operation: Operation) -> dict[str, Any]:
    """The operation as JSON values; bytes become ``{"hex": …}``."""
    shown: dict[str, Any] = {"op": type(operation).__name__}
    for field in fields(operation):
        value = getattr(operation, field.name)
        if isinstance(value, bytes):
            value = {"hex": value.hex()}
        elif isinstance(value, Enum):
            value = value.value
        shown[field.name] = value
    return shown


def digest(program: Iterable[Operation]) -> str:
    """SHA-256 of what a program does, with generated event names reduced to their stems.

    Actors, slots and addresses need no such care: programs number them from the start
    every time.
    """
    summary = hashlib.sha256()
    for operation in program:
        text = json.dumps(_without_serials(encode(operation)), sort_keys=True)
        summary.update(text.encode() + b"\n")
    return summary.hexdigest()


def _without_serials(shown: dict[str, Any]) -> dict[str, Any]:
    for key, value in shown.items():
        if isinstance(value, str):
            shown[key] = _GENERATED.sub("t_", value)
        elif isinstance(value, dict):
            text = bytes.fromhex(value["hex"]).decode("latin-1")
            shown[key] = {"hex": _GENERATED.sub("t_", text).encode("latin-1").hex()}
    return shown
