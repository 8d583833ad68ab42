"""Run kbuild's make in an output directory, with its output in a log."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path

from host.arch import ARCH, IMAGE
from host.deadline import Deadline
from host.progress import Progress, Step
from kernels import kconfig
from kernels.build.stale_objects import compiled_objects, stale_objects
from kernels.catalog.entries import KernelEntry
from kernels.errors import BuildFailed, Killed, LostOptions
from kernels.tools import ccache, child_process

CONFIGURE_S = 900.0
BUILD_S = 4 * 3600.0
TAIL_LINES = 15
# One step per object would only flicker.
PROGRESS_S = 1.0

# What an object costs on average, linking included: most of it is parsing headers.
OBJECT_CPU_S = 0.45

# A line of kbuild's short output for a compiled object: "  CC      kernel/fork.o".  Objects of the
# symbol table and of the decompressor belong to every image and are not counted.
_COMPILED = re.compile(r"  (?:CC|AS|HOSTCC) +(?!\.tmp_vmlinux|arch/x86/boot/)\S+")

# The first message that says why make failed; with several jobs it can be far from the end.
_CAUSE = re.compile(r": (?:fatal )?error: |: undefined reference to |\*\*\* No rule to make target")

# For trees whose Makefile sets another architecture, as those of vendors do.
_NATIVE = (f"ARCH={ARCH}", "CROSS_COMPILE=")

# make's message about a program that was killed.
# 137 is the status of a shell whose command was killed.
_KILLED = re.compile(r"make.*: \*\*\* .*\] (?:Killed|Error 137)|Killed signal terminated program")


class Kbuild:
    """One output directory of kbuild."""

    def __init__(
        self,
        tree: Path,
        objects: Path,
        log: Path,
        progress: Progress,
        *,
        words: Sequence[str],
        links: Path,
    ) -> None:
        """`words` (NAME=value) go to every make; `links` is the directory for links to ccache."""
        self._words = tuple(words)
        self._caching = ccache.in_front(links)
        self._tree = tree
        self._objects = objects
        self._log = log
        self._progress = progress
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._cause: list[str] = []
        self._killed = False
        self._compiled: int | None = None  # objects; not counted while configuring
        self._begun = 0
        self._reported = float("-inf")
        # Read before a patch can change the file.
        self._when = time.gmtime((tree / "Makefile").stat().st_mtime)
        log.write_bytes(b"")

    def configure(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Configure: tinyconfig and the wanted lines, through olddefconfig.  Raises LostOptions.

        Returns the options that differ from the previous configuration.
        """
        before = self._configuration()
        deadline = Deadline(CONFIGURE_S, "configuring the kernel")
        self._make("tinyconfig", deadline=deadline)
        with (self._objects / ".config").open("a", encoding="utf-8") as file:
            file.write("\n".join(wanted) + "\n")
        self._make("olddefconfig", deadline=deadline)
        resulting = self._configuration()
        if lost := kconfig.lost(wanted, resulting):
            raise LostOptions(lost)
        return kconfig.changed(before, resulting)

    def _configuration(self) -> str:
        file = self._objects / ".config"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def build(
        self,
        entry: KernelEntry,
        why: str,
        files: Collection[str] | None,
        options: Collection[str],
    ) -> None:
        """Build the image on all available processors; `why` is reported at the end.

        `files` and `options` are those that changed since the last build; None is unknown.
        """
        fresh = not (self._objects / "vmlinux").exists()
        expected = entry.needs.objects if fresh else None
        if not fresh and files is not None:
            sources = (self._tree / file for file in files)
            expected = stale_objects(self._objects, sources, options)
        deadline = Deadline(BUILD_S, f"compiling {entry.kernel_id}")
        # Those of an interrupted build stay.
        self._compiled = self._begun = compiled_objects(self._objects) if fresh else 0
        self._make(f"-j{_jobs()}", IMAGE, deadline=deadline, expected=expected)
        self._report(deadline, expected if fresh else None, passing=False, why=why)

    def prepare_modules(self) -> None:
        """Run modules_prepare, which an image does not need."""
        self._make("modules_prepare", deadline=Deadline(CONFIGURE_S, "preparing for modules"))
        # make writes it after building modules, and there are none.  Without it, modpost accepts a
        # module that uses symbols which the kernel lacks.
        shutil.copyfile(self._objects / "vmlinux.symvers", self._objects / "Module.symvers")

    def module(self, directory: Path, deadline: Deadline, symbols: Sequence[Path]) -> None:
        """Build the modules of a directory in place.  An undefined symbol is an error.

        `symbols` are the Module.symvers of other modules whose symbols these may use.
        """
        others = [f"KBUILD_EXTRA_SYMBOLS={' '.join(map(str, symbols))}"] if symbols else []
        self._make(f"M={directory}", *others, "modules", deadline=deadline)

    def _make(self, *targets: str, deadline: Deadline, expected: int | None = None) -> None:
        def line(text: str) -> None:
            self._tail.append(text)
            # Other jobs of make print on: the line can be far from the end.
            self._killed = self._killed or _KILLED.search(text) is not None
            if (self._cause or _CAUSE.search(text)) and len(self._cause) < TAIL_LINES:
                self._cause.append(text)
            if self._compiled is not None and _COMPILED.match(text):
                self._compiled += 1

        def tick() -> None:
            if time.monotonic() - self._reported >= PROGRESS_S:
                self._report(deadline, expected, passing=True)

        with self._log.open("ab", buffering=0) as log:
            status = child_process.run(
                [
                    *("make", "-C", str(self._tree), f"O={self._objects}"),
                    *(*_NATIVE, *self._words, *targets),
                ],
                # The compiler's temporary files too, so that only one file system can fill up.
                env=child_process.environment(
                    **self._identity(), **self._caching, TMPDIR=str(self._objects)
                ),
                deadline=deadline,
                log=log,
                on_line=line,
                on_tick=tick,
            )
        if status < 0 or self._killed:
            raise Killed(deadline.what)
        if status:
            raise BuildFailed(deadline.what, self._log, self._cause or tuple(self._tail))

    def _identity(self) -> dict[str, str]:
        """What kbuild otherwise takes from clock and user.  The same recipe gives the same
        image.
        """
        return {
            "KBUILD_BUILD_TIMESTAMP": time.strftime("%a %b %e %H:%M:%S UTC %Y", self._when),
            "KBUILD_BUILD_USER": "uevt",
            "KBUILD_BUILD_HOST": "uevt",
            "KBUILD_BUILD_VERSION": "1",
        }

    def _report(
        self, deadline: Deadline, expected: int | None, *, passing: bool, why: str = ""
    ) -> None:
        self._reported = time.monotonic()
        self._progress(
            Step(
                why or deadline.what,
                elapsed_s=deadline.elapsed,
                done=self._compiled,
                expected=expected,
                begun=self._begun,
                usual_s=OBJECT_CPU_S / _jobs(),
                passing=passing,
            )
        )


def _jobs() -> int:
    return len(os.sched_getaffinity(0))
