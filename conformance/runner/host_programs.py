"""Programs of the host in a guest: whether the host has them, and whether they run there."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from conformance.ops.calls import Call
from conformance.ops.programs import SEARCH_PATH, RunProgram
from conformance.results.outcome import SkipReason
from conformance.runner.guest import Channel
from conformance.runner.guest_executor import run_to_end
from conformance.runner.guest_setup import ACTOR, text_of
from conformance.runner.judgement import NotJudged
from host.packages import install_command


def check_installed(names: Sequence[str]) -> None:
    """Raise NotJudged for programs that the host lacks."""
    if lacking := [name for name in names if shutil.which(name, path=SEARCH_PATH) is None]:
        why = f"the host has no {' and no '.join(lacking)}; {install_command(lacking)}"
        raise NotJudged(SkipReason.HOST_TOOL, why)


class HostPrograms:
    """The programs of the host in one guest.  Raises what the channel raises."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._mounted = False
        self._tried: set[str] = set()

    def mount(self, mounting: Call) -> bool:
        """Mount them, once; whether that is new.  Raises NotJudged."""
        if self._mounted:
            return False
        (result,) = self._channel.call(ACTOR, [mounting])
        if result["errno"]:
            raise NotJudged(SkipReason.CONFIG, "the kernel does not mount 9p (CONFIG_9P_FS)")
        self._mounted = True
        return True

    def try_out(self, names: Sequence[str]) -> None:
        """Run each program once.  Raises NotJudged for one that does not run on this kernel.

        Some distributions have a script that looks for the perf of the kernel that runs.
        """
        for name in names:
            if name in self._tried:
                continue
            program = RunProgram(ACTOR, f"{name} --version")
            (ended,) = run_to_end(self._channel, ACTOR, program)
            said = text_of(ended).strip()
            # The exit code says nothing: that of trace-cmd is 255.
            if not said.startswith(f"{name} v"):
                first = said.partition("\n")[0]
                why = f"{name} of the host does not run in the guest: {first}"
                raise NotJudged(SkipReason.HOST_TOOL, why)
            self._tried.add(name)
