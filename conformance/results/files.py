"""Read files of results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conformance.results.errors import ReportError
from conformance.results.json_codec import SchemaError
from host.files import open_regular


@contextmanager
def reading(path: Path, what: str = "") -> Iterator[None]:
    """Raise ReportError for a file that cannot be read or is malformed: ``what``, then why."""
    try:
        yield
    except OSError as error:
        raise ReportError.unreadable(path, error) from error
    except SchemaError as error:
        raise ReportError.malformed(path, f"{what}{error}") from error


def read_json(path: Path) -> Any:
    """Raises ReportError for a file that cannot be read, or is not JSON."""
    with reading(path):
        with open_regular(path) as file:
            content = file.read()
        try:
            return parsed(content)
        except (ValueError, RecursionError) as error:
            raise ReportError.malformed(path, f"is not JSON: {error}") from error


def parsed(content: bytes) -> Any:
    """The value of JSON, without the numbers that JSON does not have.  Raises ValueError."""
    return json.loads(content, parse_float=_finite, parse_constant=_finite)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no finite number")
    return number
