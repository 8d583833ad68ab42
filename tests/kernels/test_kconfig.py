"""Wanted options: merging them, and finding every one that did not survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels import kconfig
from kernels.errors import LostOptions
from kernels.kconfig import LostOption

WANTED = ("CONFIG_A=y", "CONFIG_B=y", "CONFIG_HZ=1000", "# CONFIG_OFF is not set")


def test_surviving_options_are_not_lost() -> None:
    resulting = (
        "#\n# Automatically generated\n#\nCONFIG_HZ=1000\n\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_C=y\n"
    )
    assert kconfig.lost(WANTED, resulting) == ()


@pytest.mark.parametrize(
    ("resulting", "text"),
    [
        ("CONFIG_A=y\nCONFIG_HZ=1000", "CONFIG_B (wanted y) is absent"),
        ("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_HZ=1000", "CONFIG_B (wanted y) is not set"),
        ("CONFIG_A=y\nCONFIG_B=m\nCONFIG_HZ=1000", "CONFIG_B (wanted y) became m"),
        ("CONFIG_A=y\nCONFIG_B=y\nCONFIG_HZ=100", "CONFIG_HZ (wanted 1000) became 100"),
        (
            "CONFIG_A=y\nCONFIG_B=y\nCONFIG_HZ=1000\nCONFIG_OFF=y",
            "CONFIG_OFF (wanted n) became y",
        ),
    ],
)
def test_lost_option_names_its_result(resulting: str, text: str) -> None:
    assert [str(each) for each in kconfig.lost(WANTED, resulting)] == [text]


def test_the_error_names_every_lost_option() -> None:
    error = LostOptions(kconfig.lost(WANTED, "CONFIG_A=y"))
    assert "2 wanted options" in str(error)
    assert "CONFIG_B" in str(error)
    assert "CONFIG_HZ" in str(error)


def test_option_with_the_same_prefix_does_not_count() -> None:
    assert kconfig.lost(("CONFIG_NET=y",), "CONFIG_NET_9P=y") == (
        LostOption("CONFIG_NET", "y", None),
    )


def test_merge_keeps_one_line_per_option_and_the_last_wins() -> None:
    first = "# a comment\nCONFIG_A=y\nCONFIG_B=y\n"
    second = "# CONFIG_A is not set\nCONFIG_C=m\n"
    assert kconfig.merge([first, second]) == ("# CONFIG_A is not set", "CONFIG_B=y", "CONFIG_C=m")


def test_malformed_lines_are_found() -> None:
    assert kconfig.malformed("CONFIG_A=y\n\n# fine\nCONFIG_B\nFOO=y\n") == ("CONFIG_B", "FOO=y")


@pytest.mark.parametrize("path", sorted(kconfig.FRAGMENTS.glob("*.config")), ids=lambda p: p.stem)
def test_every_fragment_is_well_formed(path: Path) -> None:
    text = path.read_text()
    assert kconfig.malformed(text) == ()
    assert kconfig.values(text)


def test_no_user_events_disables_user_events_only() -> None:
    guest, user_events, no_user_events = (
        kconfig.fragment_path(name).read_text()
        for name in ("guest", "user_events", "no-user-events")
    )
    full = kconfig.merge((guest, user_events))
    without = kconfig.merge((guest, user_events, no_user_events))
    assert set(full) - set(without) == {"CONFIG_USER_EVENTS=y"}
    assert set(without) - set(full) == {"# CONFIG_USER_EVENTS is not set"}
