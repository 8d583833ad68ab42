"""Known bugs of the kernel: those that refuse correct calls, and those that it does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from conformance.abi.adapted_profile import AdaptedProfile
from conformance.abi.bugs import BUGS
from conformance.abi.profile import Profile
from conformance.programs.judge import Judge
from conformance.programs.judgement import JudgedCall, Judgement, Verdict
from vm.recorder.recording import Group

_FIXABLE = frozenset(each.name for each in BUGS if not each.by_chance)


def judged(profile: Profile, groups: Callable[[], Iterable[Group]]) -> Judgement:
    """The judgement of a recording, which is read again for each bug that matters to it.

    If the kernel only deviates by not having known bugs, it is judged without them.  A refused
    call that succeeds without a bug has its name.
    """
    asked = AdaptedProfile.of(profile, _FIXABLE - profile.switches)
    judgement = Judge(asked).feed(groups())
    missing, best = [], judgement
    switches = profile.switches
    for bug in sorted(asked.used):
        deviations, refused = best.of(Verdict.DEVIATES), judgement.of(Verdict.REFUSED)
        if not deviations and not refused:
            break
        fixed = Judge(replace(profile, switches=switches | {bug})).feed(groups())
        if len(fixed.of(Verdict.DEVIATES)) < len(deviations):
            best, switches = fixed, switches | {bug}
            missing.append(f"the kernel does not have the known bug {bug}")
        else:
            _name(judgement, fixed, bug)
    if not missing or best.of(Verdict.DEVIATES):
        return judgement
    best.remarks.update(missing)
    return best


def _name(judgement: Judgement, fixed: Judgement, bug: str) -> None:
    """Name the bug in each refused call that succeeds without it."""
    others = {each.step.number: each for each in fixed.of(Verdict.DEVIATES)}
    judgement.calls = [
        replace(each, bug=bug) if _succeeds(each, others) else each for each in judgement.calls
    ]


def _succeeds(call: JudgedCall, others: Mapping[int, JudgedCall]) -> bool:
    other = others.get(call.step.number)
    if call.verdict is not Verdict.REFUSED or call.bug or other is None:
        return False
    same = (other.step.operation, other.step.seen) == (call.step.operation, call.step.seen)
    return same and any(not each.errno for each in other.step.allowed)
