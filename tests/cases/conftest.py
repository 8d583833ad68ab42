"""Every case, run once on the model for all tests that look at programs."""

from __future__ import annotations

import pytest

from tests.cases.variants import PROFILE, Outcome, Variant, all_variants, honest


@pytest.fixture(scope="session")
def variants() -> list[Variant]:
    """All variants that kernels of 6.12 are judged by."""
    return [variant for variant in all_variants() if variant.case.applies(PROFILE)]


@pytest.fixture(scope="session")
def recorded(variants: list[Variant]) -> dict[str, Outcome]:
    """What each variant did on the model, by id."""
    return {variant.id: honest(variant) for variant in variants}
