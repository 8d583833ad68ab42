"""Each dated switch has one case, and a kernel that contradicts it fails that case alone."""

from __future__ import annotations

from collections import defaultdict
from functools import cache, partial
from typing import ClassVar

import pytest
from msgspec.structs import replace

from conformance.abi.adapted_profile import AdaptedProfile
from conformance.abi.profile import Profile, ProfileError, in_range, profile_for
from conformance.abi.switch import Switch
from conformance.abi.switches import BY_NAME, SWITCHES
from conformance.cases.case import Tier
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Blame, Outcome, SkipReason
from conformance.runner.runner import Runner
from conformance.runner.switch_probes import Probe
from tests.cases.variants import Variant, all_variants, judged

# Releases whose models are changed in one switch.
BASES = ("5.18", "6.1.192", "6.4", "6.12.117", "7.3")
# Switches of which the model implements one side only, and why.
ONE_SIDED = {
    "synthetic_numbers_printed": "without it an address is shown",
    "deleted_files_refused": "without it a read returns freed memory",
    "long_values_as_symbols": "the symbol depends on where the kernel lies",
}

FACTS = [each.name for each in SWITCHES if not each.bug]


def unmeasured(switch: Switch) -> bool:
    """Whether no case measures a switch: the bug shows as a kernel report, or by chance."""
    return bool(switch.fingerprints) or switch.by_chance


# Known bugs with a probe.
MEASURED = [each.name for each in SWITCHES if each.bug and not unmeasured(each)]


@cache
def everything() -> tuple[Variant, ...]:
    """All variants of all cases."""
    return tuple(all_variants())


def dated() -> dict[str, list[Variant]]:
    """The variants about each switch."""
    found = defaultdict(list)
    for variant in everything():
        if variant.case.switch:
            found[variant.case.switch].append(variant)
    return found


@cache
def releases() -> list[Profile]:
    """Profiles on both sides of every date."""
    texts = ["first-commit", "merge-window"]
    texts += [f"{major}.{minor}" for major in (5, 6, 7) for minor in range(20)]
    for switch in SWITCHES:
        for (major, minor), sublevel in switch.backports.items():
            texts += [f"{major}.{minor}.{sublevel}", f"{major}.{minor}.{sublevel - 1}"]
    found = []
    for text in texts:
        try:
            found.append(profile_for(text))
        except ProfileError:
            continue
    return found


# Declarations


def test_every_switch_has_exactly_one_case() -> None:
    cases = {switch: {each.case.id for each in found} for switch, found in dated().items()}
    without = [each.name for each in SWITCHES if each.name not in cases and not unmeasured(each)]
    assert without == [], f"declare a case with switch= for each of {', '.join(without)}"
    assert {name: ids for name, ids in cases.items() if len(ids) > 1} == {}


def test_case_of_a_switch_is_quick_and_has_one_variant() -> None:
    """Its program is the probe of the switch."""
    found = [each for name in FACTS for each in dated()[name]]
    assert [each.id for each in found if each.id != each.case.id] == []
    assert [each.id for each in found if each.tier is not Tier.QUICK] == []


@pytest.mark.parametrize("switch", [*(each for each in FACTS if each not in ONE_SIDED), *MEASURED])
def test_case_of_a_switch_applies_to_both_sides(switch: str) -> None:
    (case,) = {each.case for each in dated()[switch]}
    assert switch not in case.needs
    sides = {each.has(switch) for each in releases()}
    judged = {each.has(switch) for each in releases() if in_range(case.profiles, each)}
    assert judged == sides


# A kernel that deviates in a switch


def run(runner: Runner, variant: Variant) -> CaseResult:
    """Run a variant to its end."""
    return judged(runner, variant.case, partial(variant.function, **variant.arguments), variant.id)


@cache
def queries(abi: str) -> dict[str, set[str]]:
    """The switches that each quick case, and each that shows a bug, asks its profile for."""
    found = {}
    for variant in everything():
        if variant.tier is Tier.QUICK or variant.case.bugs or variant.case.switch:
            profile = AdaptedProfile.of(profile_for(abi), frozenset(BY_NAME))
            if variant.case.applies(profile):
                run(Runner(profile, profile, lambda error, answered: None), variant)
            found[variant.id] = profile.used
    return found


def judge(profile: Profile, kernel: Profile, bug: str = "") -> tuple[Runner, list[CaseResult]]:
    """Run the cases of the quick tier, and all that show a bug, on the model of another profile.

    On a kernel of the same release, cases that ask for no switch in which it differs are left out:
    they cannot notice.
    """
    between = profile.switches ^ kernel.switches
    same = profile.name == kernel.name

    def can_differ(variant: Variant) -> bool:
        return not same or not between.isdisjoint(queries(profile.name)[variant.id])

    runner = Runner(profile, kernel, lambda error, answered: None)
    firsts = [found[0] for found in dated().values() if can_differ(found[0])]
    runner.measure_with(
        [Probe(each.case, partial(each.function, **each.arguments)) for each in firsts]
    )
    runner.measure()
    selected = [
        each
        for each in everything()
        if each.case.applies(profile)
        and (each.tier is Tier.QUICK or bug in each.case.bugs)
        and can_differ(each)
    ]
    return runner, [run(runner, each) for each in selected]


def failures(results: list[CaseResult]) -> list[CaseResult]:
    """The results that are not as expected."""
    return [each for each in results if each.outcome not in (Outcome.PASS, Outcome.SKIP)]


def flipped(profile: Profile, *switches: str) -> Profile:
    """A profile with some switches inverted."""
    return replace(profile, switches=profile.switches ^ {*switches})


def visible(switch: str, base: str) -> bool:
    """Whether kernels of a release show the switch."""
    return dated()[switch][0].case.applies(profile_for(base))


def turnable(switch: str, base: str) -> bool:
    """Whether kernels of a release differ in the switch."""
    generation = profile_for(base).generation
    sides = {each.has(switch) for each in releases() if each.generation is generation}
    return len(sides) == 2 or BY_NAME[switch].since is None


# Kernels that cannot be: the case needs what the release lacks, and others meet the deviation.
IMPOSSIBLE = {("6.4", "deferred_release")}
PAIRS = [
    pytest.param(base, switch, id=f"{base}-{switch}")
    for base in BASES
    for switch in FACTS
    if switch not in ONE_SIDED and turnable(switch, base) and (base, switch) not in IMPOSSIBLE
]


@pytest.mark.parametrize(("base", "switch"), PAIRS)
def test_deviating_switch_fails_only_its_case(base: str, switch: str) -> None:
    profile = profile_for(base)
    runner, results = judge(profile, flipped(profile, switch))
    failed = failures(results)
    if not visible(switch, base):
        assert (failed, runner.contradictions) == ([], ())
        return
    (variant,) = dated()[switch]
    assert [each.id for each in failed] == [variant.id]
    assert (failed[0].outcome, failed[0].blame) == (Outcome.FAIL, Blame.KERNEL)
    assert f"contradicts switch {switch} of profile {base} (" in failed[0].reason
    assert failed[0].adapted == ()
    assert [each.switch for each in runner.contradictions] == [switch]
    assert {each.adapted for each in results} <= {(), (switch,)}
    skipped = [each for each in results if each.outcome is Outcome.SKIP]
    assert {(each.reason, each.adapted) for each in skipped} <= {
        (SkipReason.CONTRADICTED.value, (switch,))
    }
    needing = [each for each in results if switch in case_of(each).case.needs]
    assert all(each.outcome is Outcome.SKIP for each in needing if profile.has(switch))


def case_of(result: CaseResult) -> Variant:
    """The variant of a result."""
    return next(each for each in everything() if each.id == result.id)


@pytest.mark.parametrize("switch", ONE_SIDED)
def test_one_sided_switch_never_deviates(switch: str) -> None:
    """If this fails, the model implements both sides: remove the exception."""
    (variant,) = dated()[switch]
    applicable = [each for each in releases() if variant.case.applies(each)]
    base = max(applicable, key=lambda each: each.has(switch))
    runner, _ = judge(base, flipped(base, switch))
    assert runner.contradictions == ()


@pytest.mark.parametrize("bug", MEASURED)
def test_fixed_bug_fails_no_case_and_its_return_fails_its_own(bug: str) -> None:
    # Some bugs are in few releases: 6.9, 6.10 and 6.14 have some that no other base has.
    bases = [
        base
        for base in (*BASES, "6.9", "6.10", "6.14")
        if visible(bug, base) and not profile_for(base).fixed(bug)
    ]
    present = profile_for(bases[-1])
    fixed = flipped(present, bug)
    runner, results = judge(present, fixed, bug)
    assert [each.id for each in failures(results)] == []
    assert [each.switch for each in runner.contradictions] == [bug]
    # What programs print is a literal of the case, to the model as well.
    shown = [each for each in results if each.surface != "consumers"]
    showing = [each.id for each in shown if bug in each.bug.split()]
    assert dated()[bug][0].id in showing
    runner, results = judge(fixed, present, bug)
    assert [each.id for each in failures(results)] == showing


def test_two_deviating_switches_fail_two_cases() -> None:
    profile = profile_for("6.12.117")
    kernel = flipped(profile, "ebadf_when_disabled", "persist")
    runner, results = judge(profile, kernel)
    assert sorted(each.id for each in failures(results)) == [
        "dated.ebadf_when_disabled",
        "persist.accepted",
    ]
    assert [each.override for each in runner.contradictions] == [
        "ebadf_when_disabled=no",
        "persist=no",
    ]


@pytest.mark.parametrize(
    ("abi", "kernel"),
    [
        ("7.2", "6.5"),
        ("7.2", "6.6"),
        ("7.2", "6.8"),
        ("7.2", "6.18"),
        ("6.6", "6.12.117"),
        ("6.5", "6.4.5"),
        ("6.4", "6.5"),
        ("5.18", "first-commit"),
        ("first-commit", "5.18"),
        ("5.18", "merge-window"),
        ("merge-window", "5.18"),
        ("merge-window", "first-commit"),
    ],
)
def test_kernel_of_another_release_fails_the_cases_of_its_switches(abi: str, kernel: str) -> None:
    profile, other = profile_for(abi), profile_for(kernel)
    runner, results = judge(profile, other)
    assert {each.id: each.reason for each in results if each.outcome is Outcome.ERROR} == {}
    between = {switch for switch in FACTS if profile.has(switch) != other.has(switch)}
    facts = {each.switch for each in runner.contradictions if not each.bug}
    assert facts <= between
    # A bug that is back fails its case as well.
    failing = [each for each in runner.contradictions if not each.bug or profile.has(each.switch)]
    failed = {case_of(each).case.id for each in results if each.outcome is Outcome.FAIL}
    assert failed == {each.case for each in failing}
    assert failed


def test_stated_abi_makes_the_kernel_pass() -> None:
    profile = profile_for("6.12.117,ebadf_when_disabled=no")
    runner, results = judge(profile, flipped(profile_for("6.12.117"), "ebadf_when_disabled"))
    assert runner.contradictions == ()
    assert {each.outcome for each in results} == {Outcome.PASS}


# A kernel that changes


class Moody(Profile, frozen=True):
    """A profile with a switch that changes during the run."""

    switch: ClassVar[str] = "ebadf_when_disabled"
    contrary: ClassVar[bool] = False

    def has(self, switch: str) -> bool:
        return Profile.has(self, switch) != (switch == self.switch and Moody.contrary)


@pytest.mark.parametrize(
    ("at_first", "reason"),
    [
        pytest.param(True, "contradicted the profile, the case agrees with it", id="better"),
        pytest.param(False, "agreed with the profile, the case contradicts it", id="worse"),
    ],
)
def test_case_that_disagrees_with_its_probe_is_an_error(
    monkeypatch: pytest.MonkeyPatch, at_first: bool, reason: str
) -> None:
    base = profile_for("6.12.117")
    (variant,) = dated()[Moody.switch]
    (other,) = dated()["persist"]
    runner = Runner(base, Moody(base.name, base.release, base.switches), lambda *_: None)
    runner.measure_with([Probe(variant.case, variant.function)])
    monkeypatch.setattr(Moody, "contrary", at_first)
    runner.measure()
    assert run(runner, other).outcome is Outcome.PASS
    monkeypatch.setattr(Moody, "contrary", not at_first)
    result = run(runner, variant)
    assert (result.outcome, result.blame) == (Outcome.ERROR, Blame.HARNESS)
    assert reason in result.reason


def test_other_failure_of_the_case_is_a_failure() -> None:
    base = profile_for("6.12.117")
    (variant,) = dated()["ebadf_when_disabled"]
    runner = Runner(base, base, lambda *_: None)
    runner.measure_with([Probe(variant.case, variant.function)])
    runner.measure()
    ue = runner.begin(variant.case, variant.id)
    ue.open_data()
    result = runner.end(variant.case, variant.id, AssertionError("no such thing"))
    assert (result.outcome, result.blame) == (Outcome.FAIL, Blame.CASE)
    assert result.reason == (
        "no such thing (the model agrees with the kernel: check the case, then the model)"
    )
