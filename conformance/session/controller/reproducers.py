"""Write the stand-alone program of each failure into the directory of a run."""

from __future__ import annotations

from pathlib import Path

from conformance.repro.errors import NotExpressible
from conformance.repro.of_result import program_of_result
from conformance.results.directory import REPRODUCERS
from conformance.results.run import RunRecord
from host.files import write_atomically

_MOST = 100


def write_reproducers(record: RunRecord, directory: Path) -> list[Path]:
    """``repro/CASE.c`` of results that deviate, of the first hundred.  Raises OSError."""
    written: list[Path] = []
    for case in record.cases:
        if not case.unexpected or len(written) == _MOST:
            continue
        try:
            text = program_of_result(case, record.head)
        except NotExpressible:
            # `uevt repro RUN -k CASE` gives the reason.
            continue
        path = directory / REPRODUCERS / f"{case.id}.c"
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, text)
        written.append(path)
    return written
