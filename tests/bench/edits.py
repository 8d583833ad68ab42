"""From an edit of a kernel's source to the verdict: uevt against make, virtme-ng and selftests."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.session.target.target import Target
from tests.bench import guests

_BUILD_S = 1800.0
_EDITED = Path("kernel/trace/trace_events_user.c")
_IMAGE = Path("arch/x86/boot/bzImage")


class EditedKernel:
    """A source tree whose trace_events_user.c changes, with a build of its own by `make`.

    ``config`` is the configuration that both builds start from.
    """

    def __init__(self, tree: Path, config: Path, directory: Path) -> None:
        self._tree, self._objects = directory / "tree", directory / "objects"
        # Hard links: only the edited file becomes another one.
        shutil.copytree(tree, self._tree, symlinks=True, copy_function=os.link)
        self._text = (tree / _EDITED).read_text(encoding="utf-8")
        # From the time on: the store has the kernels of earlier measurements.
        self._numbers = itertools.count(int(time.time()))
        self._objects.mkdir()
        shutil.copy(config, self._objects / ".config")
        self._make("olddefconfig")
        self._make("bzImage")

    def judged(self) -> float:
        """Seconds of `uevt run --tree` at the quick tier after an edit."""
        self._edit()
        return guests.run("--tree", str(self._tree), "--tier", "quick")[1]

    def made(self, selftests: str) -> float:
        """Seconds of `make bzImage` and of a command in virtme-ng after an edit."""
        self._edit()
        began = time.perf_counter()
        self._make("bzImage")
        guests.vng(self._objects / _IMAGE, selftests)
        return time.perf_counter() - began

    def _edit(self) -> None:
        line = f"static const int edit __used = {next(self._numbers)};\n"
        file = self._tree / _EDITED
        file.unlink()
        file.write_text(self._text + line, encoding="utf-8")

    def _make(self, what: str) -> None:
        words = ["make", f"-j{os.cpu_count()}", f"O={self._objects}", what]
        subprocess.run(
            words, cwd=self._tree, stdout=subprocess.DEVNULL, timeout=_BUILD_S, check=True
        )


@contextmanager
def edited_kernel(target: Target, tree: Path) -> Iterator[EditedKernel]:
    """Copy a kernel's source and build it twice, so that the next builds are incremental."""
    assert target.config is not None
    # In the store for the hard links, always in the same place for uevt's objects of it.
    directory = tree.parents[1] / "edited"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    try:
        kernel = EditedKernel(tree, target.config, directory)
        kernel.judged()
        yield kernel
    finally:
        shutil.rmtree(directory)
