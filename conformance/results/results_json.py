"""results.json: a whole run in one document, schema 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance.results.errors import ReportError
from conformance.results.files import read_json, reading
from conformance.results.json_codec import SCHEMA
from conformance.results.run import RunRecord
from host.files import write_atomically

NAME = "results.json"


def write_results(record: RunRecord, path: Path) -> None:
    """Write ``path`` atomically.  Raises OSError."""
    write_atomically(path, json.dumps(record.to_json(), indent=1, allow_nan=False) + "\n")


def read_results(path: Path) -> RunRecord:
    """Read and validate ``path``.

    Raises ReportError, naming the place, for a file that is unreadable, not JSON, or of another
    schema.
    """
    with reading(path):
        return RunRecord.from_json(read_document(path))


def read_document(path: Path) -> Any:
    """The unchecked JSON of ``path``.  Raises ReportError for another schema, or none."""
    data = read_json(path)
    if isinstance(data, dict) and (found := data.get("schema")) != SCHEMA:
        what = "has no schema" if found is None else f"has schema {found!r}"
        newer = isinstance(found, int) and found > SCHEMA
        hint = "update uevt" if newer else "run again, or read it with the uevt that wrote it"
        raise ReportError(path, f"{what}, and this uevt reads schema {SCHEMA}", hint)
    return data
