"""Every fault that `make torture` injects: what it breaks, how, and what it may do to a case.

Cases that a fault does not hit end as in an undisturbed run.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from conformance.results.outcome import Blame, Outcome

Verdict = tuple[Outcome, Blame]

PASS = (Outcome.PASS, Blame.NONE)
CRASH = (Outcome.CRASH, Blame.KERNEL)
TIMEOUT = (Outcome.TIMEOUT, Blame.KERNEL)
WARNED = (Outcome.FAIL, Blame.KERNEL)
GUEST = (Outcome.ERROR, Blame.GUEST)
HOST = (Outcome.ERROR, Blame.HOST)


class Part(StrEnum):
    """What a fault breaks."""

    QEMU = "QEMU"
    AGENT = "agent"
    CHANNEL = "channel"
    KERNEL = "kernel"
    RUN = "run"
    BUILD = "build"
    SNAPSHOT = "snapshot"


class Fault(Struct, frozen=True):
    """A fault.

    ``stands`` are results that the hit case may end with, besides its undisturbed one; ``first``
    those of a first attempt whose rerun stands.  ``weight`` is its share among the others,
    ``allowance_s`` how much longer a run may take, on a busy machine without KVM.  ``hazard`` is
    a word of the hazard module that causes it.  An ``alone`` fault has a run of its own; one that
    ``ends`` it makes a resume necessary.
    """

    name: str
    breaks: Part
    how: str
    stands: tuple[Verdict, ...] = ()
    first: tuple[Verdict, ...] = ()
    weight: int = 1
    allowance_s: float = 60.0
    hazard: str = ""
    ends: bool = False
    alone: bool = False


FAULTS = (
    Fault("qemu-killed", Part.QEMU, "SIGKILL", first=(HOST,), weight=6),
    Fault("qemu-stopped", Part.QEMU, "SIGSTOP", first=(HOST,), allowance_s=240),
    Fault("qemu-paused", Part.QEMU, "SIGSTOP, SIGCONT one second later", weight=4),
    Fault("agent-killed", Part.AGENT, "SIGKILL to all actors", first=(GUEST,), weight=6),
    Fault("frame-flipped", Part.CHANNEL, "flip a bit", first=(GUEST,), weight=6),
    Fault("frame-dropped", Part.CHANNEL, "drop a frame", first=(GUEST,), weight=2, allowance_s=240),
    Fault("frame-doubled", Part.CHANNEL, "repeat a frame", first=(GUEST,), weight=4),
    Fault("frame-delayed", Part.CHANNEL, "delay a frame up to one second", weight=4),
    Fault("panic", Part.KERNEL, "sysrq c", (CRASH,), weight=6),
    Fault("oops", Part.KERNEL, "NULL pointer", (CRASH,), weight=6, hazard="null"),
    Fault("warning", Part.KERNEL, "WARN()", (WARNED,), weight=6, hazard="warn"),
    Fault("hang", Part.KERNEL, "spin with interrupts off", (TIMEOUT,), allowance_s=240,
          hazard="spin_irqs_off"),
    Fault("worker-killed", Part.RUN, "SIGKILL to a worker", first=(HOST,), weight=5),
    Fault("controller-killed", Part.RUN, "SIGKILL to the controller", weight=2, ends=True,
          alone=True),
    Fault("run-killed", Part.RUN, "SIGKILL to the process group", weight=2, ends=True, alone=True),
    # The case may be tried twice on a full disk.
    Fault("disk-full", Part.RUN, "fill the disk of the results", (HOST,), (HOST,), ends=True,
          alone=True),
    Fault("make-killed", Part.BUILD, "SIGKILL to a builder or its programs", weight=4, alone=True),
    Fault("snapshot-killed", Part.SNAPSHOT, "SIGKILL while it is made or restored", alone=True),
)  # fmt: skip
BY_NAME = {fault.name: fault for fault in FAULTS}


def kill_all(pids: Iterable[int]) -> bool:
    """SIGKILL to processes; whether any existed."""
    killed = False
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed = True
    return killed


def exists(pid: int) -> bool:
    """Whether a process exists."""
    return Path(f"/proc/{pid}").exists()
