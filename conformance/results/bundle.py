"""A failure in one file: its program, its answers, and the circumstances of its run."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct, to_builtins

from conformance.results.case_result import CaseResult
from conformance.results.errors import ReportError
from conformance.results.files import parsed, reading
from conformance.results.json_codec import decode
from conformance.results.run import RunHead
from host.files import read_given

VERSION = 1


class Bundle(Struct, frozen=True):
    """``head`` has kernel, patches, configuration digest, options and revision of the suite.

    ``source`` is the stand-alone program, "" if there is none.  Raises ValueError for another
    version, or a result without a recorded program.
    """

    bundle: int
    head: RunHead
    result: CaseResult
    source: str = ""

    def __post_init__(self) -> None:
        if self.bundle != VERSION:
            raise ValueError(f"bundle {self.bundle} is of another version of uevt")
        if not self.result.evidence.program:
            raise ValueError(f"{self.result.id} has no recorded program")

    @property
    def text(self) -> str:
        """The text of its file."""
        return json.dumps(to_builtins(self), indent=1, allow_nan=False) + "\n"


def read_bundle(path: Path) -> Bundle:
    """Read and validate ``path``.  Raises ReportError, naming the place."""
    hint = "name a file that uevt bundle wrote"
    try:
        data = parsed(read_given(path))
    except OSError as error:
        raise ReportError(path, error.strerror or str(error), hint) from error
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or "bundle" not in data:
        raise ReportError(path, "is not a file of uevt bundle", hint)
    with reading(path):
        return decode(Bundle, data, "bundle")
