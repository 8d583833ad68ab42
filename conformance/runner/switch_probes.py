"""Probe which ABI switches the kernel deviates in, and judge the rest accordingly.

A probe is the program of the case about a switch.  If it passes under the profile, the switch is as
dated.  If it passes with the switch inverted, the kernel contradicts the profile, and every other
case is judged with the inverted switch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from conformance.abi.adapted_profile import AdaptedProfile
from conformance.abi.profile import Profile
from conformance.abi.switches import BY_NAME, SWITCHES
from conformance.cases.case import Case
from conformance.client.user_events import UserEvents
from conformance.results.case_result import CaseResult
from conformance.results.contradiction import Contradiction, abi_with
from conformance.results.outcome import Blame, Outcome
from conformance.runner.grading import graded, outcome_of_switch, own_switches

# Runs of one probe at most: two probes could invalidate each other forever.
_MAX_RUNS = 4


class Probe(Struct, frozen=True):
    """The case about a switch, and its program: that of its first variant."""

    case: Case
    program: Callable[[UserEvents], None]

    @property
    def switch(self) -> str:
        """The switch that the case is about."""
        return self.case.switch


# Whether the program of a probe passes under a profile; None if the guest is lost.
PassesUnder = Callable[[Probe, Profile], bool | None]


class Finding(StrEnum):
    """The result of a probe."""

    AS_DATED = "as dated"
    CONTRADICTED = "contradicted"
    UNCLEAR = "unclear"
    # The probe lost its guest; it does not run again.
    LOST = "lost"


class SwitchMeasurement:
    """The results of the probes for the switches of a profile."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._probes: dict[str, Probe] = {}
        self._findings: dict[str, Finding] = {}
        # The switches that each run of a probe depended on.
        self._used: dict[str, list[set[str]]] = {}
        self._pending: list[Probe] = []

    def use(self, probes: Iterable[Probe]) -> None:
        """Set the probes to run, as far as they apply to the profile."""
        found = {each.switch: each for each in probes if each.case.applies(self.profile)}
        # Older switches first: later ones may depend on them.
        self._probes = {each.name: found[each.name] for each in SWITCHES if each.name in found}
        self._pending = list(self._probes.values())

    # Running

    def leave_out(self, switches: Collection[str]) -> None:
        """Skip the probes of these switches, unless another result requires them."""
        self._pending = [each for each in self._pending if each.switch not in switches]

    def measure(self, passes_under: PassesUnder) -> None:
        """Run every probe, and again those that depend on a switch contradicted later.

        Raises what ``passes_under`` raises; the next call continues with the same probe.
        """
        while self._pending:
            probe = self._pending[0]
            before = self.contradicted
            self._findings[probe.switch] = self._run(probe, passes_under)
            del self._pending[0]
            if self.contradicted != before:
                again = [each for each in self._probes.values() if self._outdated(each, probe)]
                self._pending += again

    def contradicts_now(self, switch: str, passes_under: PassesUnder) -> bool:
        """Whether the kernel contradicts a switch, by one more run of its probe."""
        return self._run(self._probes[switch], passes_under) is Finding.CONTRADICTED

    def _outdated(self, each: Probe, found: Probe) -> bool:
        """Whether the result of a probe depends on a switch that was measured after it."""
        used = self._used.get(each.switch, [])
        return (
            each is not found
            and each not in self._pending
            and self.finding(each.switch) is not Finding.LOST
            and len(used) < _MAX_RUNS
            and any(found.switch in switches for switches in used)
        )

    def _run(self, probe: Probe, passes_under: PassesUnder) -> Finding:
        """Run a probe under the profile and, if it fails, with its switch inverted."""
        used: set[str] = set()
        self._used.setdefault(probe.switch, []).append(used)
        others = self.contradicted - {probe.switch}
        for flipped, finding in (
            (others, Finding.AS_DATED),
            (others | {probe.switch}, Finding.CONTRADICTED),
        ):
            contract = AdaptedProfile.of(self._flipped(flipped), frozenset(BY_NAME))
            passed = probe.case.applies(contract) and passes_under(probe, contract)
            used |= contract.used
            if passed is None:
                return Finding.LOST
            if passed:
                return finding
        return Finding.UNCLEAR

    def _flipped(self, switches: frozenset[str]) -> Profile:
        return replace(self.profile, switches=self.profile.switches ^ switches)

    # Results

    def finding(self, switch: str) -> Finding | None:
        """The result of the probe of a switch, None before."""
        return self._findings.get(switch)

    @property
    def contradicted(self) -> frozenset[str]:
        """The contradicted switches."""
        found = self._findings.items()
        return frozenset(name for name, finding in found if finding is Finding.CONTRADICTED)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The contradicted switches for the record of the run, by name."""
        return tuple(map(self._contradiction, sorted(self.contradicted)))

    def _contradiction(self, switch: str) -> Contradiction:
        dated = BY_NAME[switch]
        return Contradiction(
            switch=switch,
            measured=not self.profile.has(switch),
            says=dated.says,
            commit=dated.commit,
            case=self._probes[switch].case.id,
            outcome=outcome_of_switch(
                dated, self._probes[switch].case.level, measured=not self.profile.has(switch)
            ),
            bug=dated.bug,
        )

    def explanation(self, switch: str) -> str:
        """The reason of the failed case about a contradicted switch."""
        found = self._contradiction(switch)
        name = self.profile.name
        if found.bug:
            fix = f", fixed by {found.commit}" if found.commit else ""
            return f"the kernel has the bug {switch}{fix}: {found.says}"
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
        """The result of the case about a switch, which must agree with its probe.

        ``answered`` is the outcome by the answers of the kernel alone; ``contradicts_now`` runs the
        probe again.
        """
        finding = self.finding(switch)
        if BY_NAME[switch].bug and (answered is Outcome.PASS or not self.profile.has(switch)):
            # Judged as measured, or a variant that does not show the bug.
            return result
        if finding is Finding.CONTRADICTED and answered is Outcome.FAIL:
            return replace(result, blame=Blame.KERNEL, reason=self.explanation(switch))
        if finding is Finding.CONTRADICTED and answered is Outcome.PASS:
            return _disagreeing(result, "contradicted the profile, the case agrees with it")
        if finding is Finding.AS_DATED and answered is Outcome.FAIL and contradicts_now():
            return _disagreeing(result, "agreed with the profile, the case contradicts it")
        return result

    def graded(self, case: Case, result: CaseResult) -> CaseResult:
        """The result as it counts: see ``conformance.runner.grading``."""
        bugs = frozenset(name for name in self.contradicted if BY_NAME[name].bug)
        return graded(result, case, self.profile, bugs)

    def profile_for(self, case: Case) -> Profile:
        """The profile for a case: as measured, except for its own switches."""
        others = self.contradicted - own_switches(case, self.profile)
        return AdaptedProfile.of(self._flipped(others), others) if others else self.profile

    def lacking(self, case: Case) -> tuple[str, ...]:
        """Measured switches that make a case inapplicable to this kernel."""
        contract = self.profile_for(case)
        if not isinstance(contract, AdaptedProfile) or case.applies(contract):
            return ()
        return tuple(sorted(contract.used))


def _disagreeing(result: CaseResult, how: str) -> CaseResult:
    why = f"its probe {how}: the same program, run twice"
    return replace(result, outcome=Outcome.ERROR, blame=Blame.HARNESS, reason=why)
