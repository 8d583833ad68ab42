"""The `when` of a rule."""

from __future__ import annotations

import pytest

from conformance.allowed_reports.condition import Condition, ConditionError, KernelContext


@pytest.mark.parametrize(
    ("when", "release", "holds"),
    [
        ("release >= 6.1", "6.12.117", True),
        ("release >= 6.1", "6.1", True),
        ("release >= 6.1", "6.0.19", False),
        ("release >= 6.9", "6.12.117", True),
        ("release < 6.9", "6.12.117", False),
        ("release == 6.12", "6.12.117-uevt", True),
        ("release != 6.12", "6.12.117", False),
        ("release > 6.12", "6.12.117", False),
        ("release <= 6.12", "6.12.117", True),
        ("release >= 6.12.97", "6.12.96", False),
        ("release >= 6.12.97", "6.12.117+deb12", True),
        ("release >= 6.12.97", "6.12", False),
        ("release == 6.12.0", "6.12-rc3", True),
        ("release >= 6.13", "6.13.0-rc2", True),
        ("release >= 6.1 and release < 6.13", "6.12.117", True),
        ("release >= 6.1 and release < 6.12", "6.12.117", False),
        ("release >= 6.1", "next-20261120", False),
        ("release != 6.1", "next-20261120", False),
    ],
)
def test_releases_compare_as_versions(when: str, release: str, holds: bool) -> None:
    assert Condition.parse(when).holds(KernelContext(release, profile="6.12")) is holds


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("profile == 6.8,ebadf_when_disabled=no", True),
        ("profile == 6.8", False),
        ("flavour == debug", True),
        ("flavour != debug", False),
        ("release >= 6.1 and flavour == debug and profile != bit-status", True),
        ("switch == persist", True),
        ("switch != persist", False),
        ("switch == multi_format", False),
        ("switch != multi_format", True),
        ("switch == persist and release < 6.12", False),
    ],
)
def test_other_facts_compare_as_words(when: str, holds: bool) -> None:
    switches = frozenset({"persist", "auto_delete"})
    context = KernelContext("6.12.117", "6.8,ebadf_when_disabled=no", "debug", switches)
    assert Condition.parse(when).holds(context) is holds


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("", "'' is not a comparison"),
        ("release", "'release' is not a comparison"),
        ("release >= 6.1 and", "'' is not a comparison"),
        ("release >= 6.1 or release < 5", "is not a comparison"),
        ("release >= six", "'six' is not a release"),
        ("release >= 6", "'6' is not a release"),
        ("kernel == 6.1", "'kernel' is not one of release, profile, flavour, switch"),
        ("switch == no_such", "'no_such' is not a dated switch"),
        ("flavour >= debug", "flavour can be compared only with == and !="),
    ],
)
def test_an_invalid_condition_names_the_part(when: str, message: str) -> None:
    with pytest.raises(ConditionError, match=message):
        Condition.parse(when)
