"""Every case passes on the model of every profile that it applies to."""

from __future__ import annotations

from collections import defaultdict

import pytest

from conformance.abi.adapted_profile import AdaptedProfile
from conformance.abi.profile import Generation, Profile, profile_for
from conformance.abi.switches import BY_NAME
from tests.cases.variants import Variant, all_variants, honest

# Releases between which something changes, and generations by name.
ABIS = (
    "rfc-v1",
    # As on the kernels that it can be built into today.
    "rfc-v1,long-record-stops-buffer=fixed,array_length_of_field=yes",
    "first-commit",
    "merge-window",
    "byte-status",
    "bit-status",
    "6.1.192",
    "6.3.13",
    "6.4",
    "6.4.16",
    "6.5",
    "6.7",
    "6.9",
    "6.10",
    "7.1",
    "7.3",
)
STATUS_PAGE_ABIS = ("first-commit", "merge-window", "byte-status", "bit-status", "6.1.192")


# The switches that programs that passed asked for, and the answers.
Answers = dict[str, bool]
PASSED: defaultdict[tuple[Generation, str], list[Answers]] = defaultdict(list)


def deviation(variant: Variant, profile: Profile) -> str:
    """How a program deviates on the model of a profile: "" if it passes.

    A profile that answers all that the program asked before is not tried: the program would run as
    it did then.
    """
    passed = PASSED[profile.generation, variant.id]
    if any(all(profile.has(name) is on for name, on in each.items()) for each in passed):
        return ""
    asked = AdaptedProfile.of(profile, frozenset(BY_NAME))
    outcome = honest(variant, profile=asked)
    if outcome.raised or outcome.accused:
        return repr(outcome.raised)
    passed.append({name: profile.has(name) for name in asked.used})
    return ""


def functions(profile: Profile) -> set[str]:
    """The ids of the cases that apply to a profile."""
    return {variant.case.id for variant in all_variants() if variant.case.applies(profile)}


@pytest.mark.parametrize("abi", ABIS)
def test_cases_pass_on_the_model(abi: str) -> None:
    profile = profile_for(abi)
    wrong = {
        variant.id: how
        for variant in all_variants()
        if variant.case.applies(profile) and (how := deviation(variant, profile))
    }
    assert wrong == {}


@pytest.mark.parametrize("abi", STATUS_PAGE_ABIS)
def test_many_cases_apply_to_a_status_page(abi: str) -> None:
    assert len(functions(profile_for(abi))) >= 80


def test_first_version_has_cases_of_its_own() -> None:
    of_rfc = functions(profile_for("rfc-v1"))
    assert {id.partition(".")[0] for id in of_rfc} == {"rfc"}
    assert len(of_rfc) >= 40
    of_others = [functions(profile_for(abi)) for abi in ABIS if not abi.startswith("rfc-v1")]
    assert of_rfc.isdisjoint(set().union(*of_others))


def test_every_case_applies_to_some_profile() -> None:
    everywhere = {variant.case.id for variant in all_variants()}
    somewhere = set().union(*(functions(profile_for(abi)) for abi in ABIS))
    assert everywhere - somewhere == set()
