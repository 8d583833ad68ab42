"""Load the user's modules before the first case, and unload them after the last.

Each load and unload has a result of its own, blamed on the module.  If a module cannot be loaded no
case is judged: the kernel would not be the one under test.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from errno import EAGAIN, errorcode
from signal import SIGKILL

from msgspec.structs import replace

from conformance.ops.calls import AT_FDCWD, fd, path_in, sys_call
from conformance.results.case_result import MODULE_SURFACE, CaseResult, Evidence, Mismatch
from conformance.results.outcome import UNEXPECTED, Blame, Outcome, SkipReason
from conformance.runner.guest import Guest
from conformance.runner.guest_setup import LIMIT, text_of
from conformance.runner.judgement import Explain, Judgement, NotJudged
from conformance.runner.user_module import UserModule

# The process that loads and unloads, and its slot.
_ACTOR = "uevt_modules"
_SLOT = 0
# Bytes of a module per message: a frame has 8 MiB, and two digits per byte.
_CHUNK = 1 << 21
# Seconds of an idle machine for the users of a module to release it.
_UNLOAD_TIMEOUT = 2.0


class ModuleNotLoaded(NotJudged):
    """A user module is not loaded: nothing can be judged."""

    def __init__(self, module: UserModule) -> None:
        super().__init__(SkipReason.MODULE, f"{module.name} is not in the kernel, see its result")


class UserModules:
    """The modules of a run, in the order of loading."""

    def __init__(self, modules: Sequence[UserModule], explain: Explain) -> None:
        self._modules = tuple(modules)
        self._explain = explain
        self._refused: ModuleNotLoaded | None = None
        self._results: list[CaseResult] = []

    def __bool__(self) -> bool:
        return bool(self._modules)

    def check(self) -> None:
        """Raise ModuleNotLoaded if a module was refused: the next guest has the same kernel."""
        if self._refused is not None:
            raise self._refused

    def take_results(self) -> list[CaseResult]:
        """The results of loads and unloads, each returned once per guest."""
        taken, self._results = self._results, []
        return taken

    def with_blame(self, result: CaseResult) -> CaseResult:
        """The result, blamed on a module if the console of a failure names one.

        The kernel prints `function+0x1/0x2 [module]` for each frame of the stack.
        """
        if result.outcome not in UNEXPECTED or result.blame is not Blame.KERNEL:
            return result
        named = any(f" [{module.name}]" in result.evidence.console for module in self._modules)
        return replace(result, blame=Blame.MODULE) if named else result

    def load(self, guest: Guest) -> None:
        """Load all modules.  Raises ModuleNotLoaded, and errors of the host."""
        for module in self._modules:
            if not self._perform(guest, module, "load"):
                self._refused = ModuleNotLoaded(module)
                raise self._refused

    def unload(self, guest: Guest) -> None:
        """Unload all modules, the last one first.  Raises errors of the host."""
        for module in reversed(self._modules):
            if not self._perform(guest, module, "unload"):
                return

    def _perform(self, guest: Guest, module: UserModule, verb: str) -> bool:
        """Load or unload a module and record the result; whether it succeeded."""
        started = time.monotonic()
        words = f"module {module.name} {verb}"
        mark = guest.mark(words)
        taint = ""
        try:
            guest.call("", [["spawn", _ACTOR]])
            if verb == "load":
                errno = _load(guest, module)
                file = f"/sys/module/{module.name}/taint"
                taint = text_of(*guest.call(_ACTOR, [["slurp", file, LIMIT]])).strip()
            else:
                errno = _unload(guest, module)
            guest.call("", [["kill", _ACTOR, SIGKILL]])
            # The console is complete up to this mark.
            guest.mark(f"{words}: done")
            splats = [str(each) for each in guest.reports(mark)]
        except Exception as error:
            trouble = self._explain(error, True)
            if trouble is None or trouble.outcome not in UNEXPECTED:
                raise
            trouble = replace(trouble, blame=Blame.MODULE, reason=f"{verb}: {trouble.reason}")
            self._results.append(_result(module, verb, trouble, (), started))
            return False
        console = guest.console(mark)
        trouble = _judge(module, verb, errno, splats, console, taint)
        self._results.append(_result(module, verb, trouble, splats, started))
        return errno == 0


def _load(guest: Guest, module: UserModule) -> int:
    """Load a module; errno, or 0."""
    path = f"/tmp/{module.name}.ko"
    image = module.file.read_bytes()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for start in range(0, len(image), _CHUNK):
        piece = image[start : start + _CHUNK]
        guest.call(_ACTOR, [["spill", path, piece.hex(), flags]])
        flags = os.O_WRONLY | os.O_APPEND
    *_, loaded, _closed, _removed = guest.call(
        _ACTOR,
        [
            sys_call("openat", AT_FDCWD, path_in(path), os.O_RDONLY, 0, slot=_SLOT),
            sys_call("finit_module", fd(_SLOT), path_in(""), 0),
            sys_call("close", fd(_SLOT)),
            sys_call("unlink", path_in(path)),
        ],
    )
    return int(loaded["errno"])


def _unload(guest: Guest, module: UserModule) -> int:
    """Unload a module when it is no longer in use; errno, or 0."""
    deadline = guest.deadline(_UNLOAD_TIMEOUT, f"release of module {module.name}")
    while True:
        call = sys_call("delete_module", path_in(module.name), os.O_NONBLOCK)
        (result,) = guest.call(_ACTOR, [call])
        if result["errno"] != EAGAIN or deadline.expired:
            return int(result["errno"])
        guest.pause(deadline)


def _judge(
    module: UserModule, verb: str, errno: int, splats: list[str], console: str, taint: str
) -> Judgement:
    """The judgement by the kernel's answer and its console."""
    if errno:
        error = f"{errorcode.get(errno, errno)} ({os.strerror(errno)})"
        why = f"the kernel does not {verb} {module.name}: {error}"
        last = _last_line(console, f"module {module.name} {verb}")
        reason = f"{why}; {last}" if last else why
        return Judgement(Outcome.FAIL, Blame.MODULE, reason, console)
    if splats:
        reason = f"the kernel complained as {module.name} was {verb}ed: {splats[0]}"
        return Judgement(Outcome.FAIL, Blame.MODULE, reason, console)
    tainted = f", taints the kernel: {taint}" if taint else ""
    return Judgement(Outcome.PASS, Blame.NONE, f"{module.name} {verb}ed{tainted}")


_STAMP = re.compile(r"^\[\s*\d+\.\d+\](?:\[\s*[TC]\d+\])? ?")


def _last_line(console: str, mark: str) -> str:
    """The last line of the kernel between our marks."""
    lines = [_STAMP.sub("", line).strip() for line in console.splitlines()]
    error = [line for line in lines if line and mark not in line]
    return error[-1] if error else ""


def _result(
    module: UserModule, verb: str, trouble: Judgement, splats: Sequence[str], started: float
) -> CaseResult:
    return CaseResult(
        id=f"{MODULE_SURFACE}.{module.name.lower()}.{verb}",
        surface=MODULE_SURFACE,
        tier="quick",
        outcome=trouble.outcome,
        blame=trouble.blame,
        reason=trouble.reason,
        duration_s=round(time.monotonic() - started, 4),
        mismatches=tuple(Mismatch(0, "console", "no complaint", line) for line in splats),
        evidence=Evidence(console=trouble.console),
    )
