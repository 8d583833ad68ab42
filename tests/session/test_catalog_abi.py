"""ABIs of catalog entries are checked before a kernel is built."""

from __future__ import annotations

import re
from argparse import Namespace

import pytest
from msgspec.structs import replace

from conformance.session.target.target import check, check_abi
from kernels.catalog.catalog import load_catalog
from kernels.errors import BadCatalogEntry, UserMistake


def test_every_abi_that_ships_is_a_profile() -> None:
    for entry in load_catalog().entries.values():
        check_abi(entry)


@pytest.mark.parametrize(
    ("changes", "key"), [({"abi": "5.2"}, "abi"), ({"differs": ("no_such_switch=yes",)}, "differs")]
)
def test_unknown_release_or_switch_is_refused(changes: dict[str, object], key: str) -> None:
    entry = replace(load_catalog().find("6.12"), **changes)
    with pytest.raises(BadCatalogEntry, match=rf"6\.12\.toml: {key}: ") as caught:
        check_abi(entry)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("abi", "why"),
    [
        ("6.99", "--abi 6.99: there is no Linux 6.99: 7.0 followed 6.19"),
        ("5.20", "there is no Linux 5.20: 6.0 followed 5.19"),
        ("6.8,persits=no", "unknown switch or bug 'persits'; did you mean persist?"),
    ],
)
def test_wrong_abi_is_refused_before_a_build(abi: str, why: str) -> None:
    with pytest.raises(UserMistake, match=re.escape(why)):
        check(Namespace(abi=abi))
