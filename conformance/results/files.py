"""Read files of results."""

from __future__ import annotations

import json
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
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ReportError.malformed(path, f"is not JSON: {error}") from error
