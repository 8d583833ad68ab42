"""The contract as measured: a profile, and the dated switches of it that a kernel contradicts.

A probe is the program of the case about a switch.  When it goes as the profile says, the
switch is as dated.  When it goes as if the switch were the other way round, the kernel
contradicts the profile: everything else is judged with the switch as it was measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from weakref import WeakValueDictionary

from conformance.abi.profile import Profile
from conformance.abi.switches import BY_NAME, SWITCHES
from conformance.cases.case import Case
from conformance.client.user_events import UserEvents
from conformance.results.case_result import Blame, CaseResult, Contradiction, Outcome, abi_with

# How often one probe is asked at most, should two of them never agree.
_MAX_RUNS = 4


@dataclass(frozen=True, slots=True)
class Probe:
    """The case about a switch, and its program: the case has no variants."""

    case: Case
    program: Callable[[UserEvents], None]

    @property
    def switch(self) -> str:
        """The switch it is about."""
        return self.case.switch


# Whether the program of a probe goes as under a profile; None when the guest is lost.
PassesUnder = Callable[[Probe, Profile], bool | None]


class Finding(StrEnum):
    """What a probe showed."""

    AS_DATED = "as dated"
    CONTRADICTED = "contradicted"
    UNCLEAR = "unclear"
    # The guest did not outlive the probe; it is not asked again.
    LOST = "lost"


class SwitchMeasurement:
    """What probes have shown so far about the switches of a profile."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._probes: dict[str, Probe] = {}
        self._findings: dict[str, Finding] = {}
        # The switches each probe depended on when it was asked, time by time.
        self._used: dict[str, list[set[str]]] = {}
        self._pending: list[Probe] = []

    def use(self, probes: Iterable[Probe]) -> None:
        """Let these probes be asked, those that apply to the profile."""
        found = {each.switch: each for each in probes if each.case.applies(self.profile)}
        # Older switches first: younger ones may depend on them.
        self._probes = {each.name: found[each.name] for each in SWITCHES if each.name in found}
        self._pending = list(self._probes.values())

    # Asking

    def leave_out(self, switches: Collection[str]) -> None:
        """Do not ask about these, unless another switch makes it necessary."""
        self._pending = [each for each in self._pending if each.switch not in switches]

    def measure(self, fits: PassesUnder) -> None:
        """Ask every probe, and again those that depend on a switch found out after them.

        Raises whatever ``fits`` raises; the next call goes on with the same probe.
        """
        while self._pending:
            probe = self._pending[0]
            before = self.contradicted
            self._findings[probe.switch] = self._run(probe, fits)
            del self._pending[0]
            if self.contradicted != before:
                again = [each for each in self._probes.values() if self._outdated(each, probe)]
                self._pending += again

    def contradicts_now(self, switch: str, fits: PassesUnder) -> bool:
        """Whether the kernel contradicts a switch, asked once more beside what is known."""
        return self._run(self._probes[switch], fits) is Finding.CONTRADICTED

    def _outdated(self, each: Probe, found: Probe) -> bool:
        """Whether what a probe showed depends on a switch that another has found out now."""
        used = self._used.get(each.switch, [])
        return (
            each is not found
            and each not in self._pending
            and self.finding(each.switch) is not Finding.LOST
            and len(used) < _MAX_RUNS
            and any(found.switch in switches for switches in used)
        )

    def _run(self, probe: Probe, fits: PassesUnder) -> Finding:
        """Run a probe as the profile says and, if that does not fit, the other way round."""
        used: set[str] = set()
        self._used.setdefault(probe.switch, []).append(used)
        others = self.contradicted - {probe.switch}
        for flipped, finding in (
            (others, Finding.AS_DATED),
            (others | {probe.switch}, Finding.CONTRADICTED),
        ):
            contract = AdaptedProfile.of(self._flipped(flipped), frozenset(BY_NAME))
            fitting = probe.case.applies(contract) and fits(probe, contract)
            used |= contract.used
            if fitting is None:
                return Finding.LOST
            if fitting:
                return finding
        return Finding.UNCLEAR

    def _flipped(self, switches: frozenset[str]) -> Profile:
        return replace(self.profile, switches=self.profile.switches ^ switches)

    # What was found

    def finding(self, switch: str) -> Finding | None:
        """What the probe of a switch showed, None where none was asked."""
        return self._findings.get(switch)

    @property
    def contradicted(self) -> frozenset[str]:
        """The switches that are not as dated."""
        found = self._findings.items()
        return frozenset(name for name, finding in found if finding is Finding.CONTRADICTED)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The same for the record of the run, in the order of their names."""
        return tuple(map(self._contradiction, sorted(self.contradicted)))

    def _contradiction(self, switch: str) -> Contradiction:
        dated = BY_NAME[switch]
        return Contradiction(
            switch=switch,
            measured=not self.profile.has(switch),
            says=dated.says,
            commit=dated.commit,
            case=self._probes[switch].case.id,
        )

    def explanation(self, switch: str) -> str:
        """What the case about a switch that is not as dated says of the kernel."""
        found = self._contradiction(switch)
        name = self.profile.name
        return (
            f"the kernel contradicts switch {switch} of profile {name} ({found.commit}); "
            f"if that is right for this kernel, judge with --abi {abi_with(name, [found])}"
        )

    def compared(
        self,
        switch: str,
        answered: Outcome,
        result: CaseResult,
        contradicts_now: Callable[[], bool],
    ) -> CaseResult:
        """The result of the case about a switch, which has to agree with its probe.

        ``answered`` is what its answers alone came to; ``contradicts_now`` asks the probe again.
        """
        finding = self.finding(switch)
        if finding is Finding.CONTRADICTED and answered is Outcome.FAIL:
            return replace(result, blame=Blame.KERNEL, reason=self.explanation(switch))
        if finding is Finding.CONTRADICTED and answered is Outcome.PASS:
            return _disagreeing(result, "contradicted the profile, the case agrees with it")
        if finding is Finding.AS_DATED and answered is Outcome.FAIL and contradicts_now():
            return _disagreeing(result, "agreed with the profile, the case contradicts it")
        return result

    def profile_for(self, case: Case) -> Profile:
        """The contract for a case: as measured, but for the switch the case is about."""
        others = self.contradicted - {case.switch}
        return AdaptedProfile.of(self._flipped(others), others) if others else self.profile

    def lacking(self, case: Case) -> tuple[str, ...]:
        """SwitchMeasurement switches on account of which a case is not for this kernel."""
        contract = self.profile_for(case)
        if not isinstance(contract, AdaptedProfile) or case.applies(contract):
            return ()
        return tuple(sorted(contract.used))


def _disagreeing(result: CaseResult, how: str) -> CaseResult:
    why = f"its probe {how}: the same program, run twice"
    return replace(result, outcome=Outcome.ERROR, blame=Blame.HARNESS, reason=why)


_serial = itertools.count()
_alive: WeakValueDictionary[int, AdaptedProfile] = WeakValueDictionary()


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class AdaptedProfile(Profile):
    """A profile that remembers which of its ``measured`` switches were asked for.

    The model copies its worlds by pickling them: a copy refers to the very same profile.
    """

    measured: frozenset[str]
    used: set[str] = field(default_factory=set, init=False, compare=False, repr=False)
    serial: int = field(default_factory=_serial.__next__, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _alive[self.serial] = self

    @classmethod
    def of(cls, profile: Profile, measured: frozenset[str]) -> AdaptedProfile:
        """A profile whose switches have been turned already."""
        same = {each.name: getattr(profile, each.name) for each in fields(Profile)}
        return cls(**same, measured=measured)

    def has(self, switch: str) -> bool:
        """Whether a dated behaviour applies.  Raises KeyError for an unknown switch."""
        if switch in self.measured:
            self.used.add(switch)
        # Not super(): dataclass() makes a new class for the slots.
        return Profile.has(self, switch)

    def __reduce__(self) -> tuple[Callable[[int], AdaptedProfile], tuple[int]]:
        return _same, (self.serial,)


def _same(serial: int) -> AdaptedProfile:
    return _alive[serial]
