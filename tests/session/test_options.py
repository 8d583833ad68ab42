"""Defaults of the options of a run."""

from __future__ import annotations

import pytest

from conformance.session.options import apply_defaults
from tests.session.test_resume import options


@pytest.mark.parametrize(
    ("words", "tier"),
    [
        (["--kernel=6.12"], "quick"),
        (["--kernel=6.12", "--flavour=debug", "--config=a", "--module=b"], "quick"),
        (["--kernel=6.12", "--patch=fix.diff"], "full"),
        (["--tree=linux"], "full"),
        (["--tree=linux", "--ref=HEAD"], "full"),
        (["--image=bzImage"], "full"),
        (["--image=bzImage", "--tier=quick"], "quick"),
        (["--kernel=6.12", "--tier=full"], "full"),
        (["--kernel=6.12", "--only=write.a"], "full"),
        (["--kernel=6.12", "--frozen=0.1.0"], "quick"),
    ],
)
def test_kernel_of_the_user_gets_the_full_tier(words: list[str], tier: str) -> None:
    given = options(*words)
    apply_defaults(given)
    assert given.tier == tier
