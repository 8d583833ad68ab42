"""The faults, as a table: what each may do to the case that it hits, and how long that may take.

Whom it hits or not, all other cases end as in a run that nobody disturbs.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.outcome import Blame, Outcome

Verdict = tuple[Outcome, Blame]

PASS = (Outcome.PASS, Blame.NONE)
CRASH = (Outcome.CRASH, Blame.KERNEL)
TIMEOUT = (Outcome.TIMEOUT, Blame.KERNEL)
COMPLAINED = (Outcome.FAIL, Blame.KERNEL)
GUEST = (Outcome.ERROR, Blame.GUEST)
HOST = (Outcome.ERROR, Blame.HOST)


@dataclass(frozen=True, slots=True)
class Fault:
    """A way to disturb a run.

    ``stands`` are what the case that is hit may end with, beside what it ends with undisturbed;
    ``first`` what its first attempt may end with where the second stands.  ``weight`` says how
    often it is among others, ``allowance_s`` how much longer a run may take, in seconds of a
    busy machine without KVM.  ``module`` needs the hazard module in the guest; a fault may be
    ``alone`` in its run, which it ``ends``.
    """

    name: str
    what: str
    stands: frozenset[Verdict] = frozenset()
    first: frozenset[Verdict] = frozenset()
    weight: int = 2
    allowance_s: float = 60.0
    module: bool = False
    ends: bool = False
    alone: bool = False


def _fault(
    name: str,
    what: str,
    *stands: Verdict,
    first: tuple[Verdict, ...] = (),
    **others: object,
) -> Fault:
    return Fault(name, what, frozenset(stands), frozenset(first), **others)  # type: ignore[arg-type]


FAULTS = (
    _fault("qemu-killed", "SIGKILL to QEMU", first=(HOST,), weight=3),
    _fault("qemu-stopped", "SIGSTOP to QEMU, for good", first=(HOST,), weight=1, allowance_s=90),
    _fault("qemu-paused", "SIGSTOP to QEMU, SIGCONT a second later"),
    _fault("agent-killed", "SIGKILL to all actors in the guest", first=(GUEST,), weight=3),
    _fault("frame-flipped", "a bit of a frame", first=(GUEST,), weight=3),
    _fault("frame-dropped", "a frame is lost", first=(GUEST,), weight=2, allowance_s=90),
    _fault("frame-doubled", "a frame comes twice", first=(GUEST,)),
    _fault("frame-delayed", "a frame comes up to a second late"),
    _fault("panic", "sysrq c", CRASH, weight=3),
    _fault("oops", "a NULL pointer in a module", CRASH, weight=3, module=True),
    _fault("warning", "WARN() in a module", COMPLAINED, weight=3, module=True),
    _fault("hang", "a module that never returns", TIMEOUT, weight=1, module=True, allowance_s=90),
    _fault("worker-killed", "SIGKILL to a pytest process", first=(HOST,), weight=3),
    _fault("controller-killed", "SIGKILL to the process that records", ends=True, alone=True),
    _fault(
        "disk-full",
        "the disk of the results fills up",
        first=(HOST,),
        weight=2,
        ends=True,
        alone=True,
    ),
    _fault("make-killed", "SIGKILL to a build", alone=True),
)
BY_NAME = {fault.name: fault for fault in FAULTS}
