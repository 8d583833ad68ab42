"""The place of disturbed runs, with the output of each."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.enclosure import ROOT, Enclosure


class Place(Enclosure):
    """An enclosure that starts Python programs and keeps their output."""

    def start(self, argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start Python in a session of its own; `output` holds its output."""
        with self.output.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, *argv],
                cwd=ROOT,
                env={**self.environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def close(self, *, keep: bool = False) -> None:
        """Remove everything, or with ``keep`` all but the results."""
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        for name in (self.cache, self.temporary, self.runtime):
            shutil.rmtree(name, ignore_errors=True)

    @property
    def output(self) -> Path:
        """The output of the program that was started last."""
        return self.directory / "output"

    def left(self, out: Path | None = None) -> list[str]:
        """Leftover processes and files, also in the results ``out`` of a run."""
        found = super().left()
        if out is not None:
            # Consoles of guests are joined at the end, and files are renamed into place.
            found += [str(each) for each in (*out.glob("gw*"), *out.glob(".*"))]
        return found
