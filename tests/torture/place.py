"""The place of tortured runs, which knows what each run has said."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.enclosure import ROOT, Enclosure


class Place(Enclosure):
    """A build store with the kernels of the real one, and places for temporary files."""

    def start(self, argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a Python of ours in a session of its own; its output is in `said`."""
        with self.said.open("wb") as said:
            return subprocess.Popen(
                [sys.executable, *argv],
                cwd=ROOT,
                env={**self.environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def close(self, *, keep: bool = False) -> None:
        """Remove everything, or ``keep`` what can be looked at."""
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        for name in (self.cache, self.temporary, self.runtime):
            shutil.rmtree(name, ignore_errors=True)

    @property
    def said(self) -> Path:
        """What the last one that was started has said."""
        return self.directory / "said"

    def left(self, out: Path | None = None) -> list[str]:
        """What is there and should not be, once nobody runs; ``out`` are the results of a run."""
        found = super().left()
        if out is not None:
            # Consoles are joined, and files appear whole.
            found += [str(each) for each in (*out.glob("gw*"), *out.glob(".*"))]
        return found
