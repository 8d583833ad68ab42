"""The faults, as a table: what each may do to the case that it hits, and how long that may take.

Whom it hits or not, all other cases end as in a run that nobody disturbs.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.results.case_result import Blame, Outcome

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
    weight: int = 1
    allowance_s: float = 60.0
    module: bool = False
    ends: bool = False
    alone: bool = False


def _fault(
    weight: int,
    name: str,
    what: str,
    *stands: Verdict,
    first: tuple[Verdict, ...] = (),
    **others: object,
) -> Fault:
    return Fault(name, what, frozenset(stands), frozenset(first), weight, **others)  # type: ignore[arg-type]


FAULTS = (
    _fault(6, "qemu-killed", "SIGKILL to QEMU", first=(HOST,)),
    _fault(1, "qemu-stopped", "SIGSTOP to QEMU, for good", first=(HOST,), allowance_s=240),
    _fault(4, "qemu-paused", "SIGSTOP to QEMU, SIGCONT a second later"),
    _fault(6, "agent-killed", "SIGKILL to all actors in the guest", first=(GUEST,)),
    _fault(6, "frame-flipped", "a bit of a frame", first=(GUEST,)),
    _fault(2, "frame-dropped", "a frame is lost", first=(GUEST,), allowance_s=240),
    _fault(4, "frame-doubled", "a frame comes twice", first=(GUEST,)),
    _fault(4, "frame-delayed", "a frame comes up to a second late"),
    _fault(6, "panic", "sysrq c", CRASH),
    _fault(6, "oops", "a NULL pointer in a module", CRASH, module=True),
    _fault(6, "warning", "WARN() in a module", COMPLAINED, module=True),
    _fault(1, "hang", "a module that never returns", TIMEOUT, module=True, allowance_s=240),
    _fault(5, "worker-killed", "SIGKILL to a pytest process", first=(HOST,)),
    _fault(2, "controller-killed", "SIGKILL to the process that records", ends=True, alone=True),
    _fault(
        1,
        "disk-full",
        "the disk of the results fills up",
        # Tried twice, and full both times.
        HOST,
        first=(HOST,),
        ends=True,
        alone=True,
    ),
    _fault(4, "make-killed", "SIGKILL to a build", alone=True),
)
BY_NAME = {fault.name: fault for fault in FAULTS}
