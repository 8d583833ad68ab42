"""docs/frozen: the list of each version, and when it is final."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

import pytest

from conformance.results.frozen import PUBLISHED, FrozenList
from tests.cases.variants import all_variants
from tests.conftest import Uevt

LISTS = sorted(PUBLISHED.glob("*.txt"))
# The SHA-256 of the list of each version that is released, which results name: final.
RELEASED: dict[str, str] = {}


def test_this_version_has_a_list() -> None:
    """Only a new version of the suite needs a new list; a new case does not."""
    name = f"{version('uevt')}.txt"
    hint = f"refresh docs/results (make matrix), then: uevt cases --frozen > docs/frozen/{name}"
    assert name in [each.name for each in LISTS], hint


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_list_is_final_or_that_of_the_published_results(uevt: Uevt, file: Path) -> None:
    """Before its release a version has the list of docs/results."""
    if file.stem in RELEASED:
        assert hashlib.sha256(file.read_bytes()).hexdigest() == RELEASED[file.stem]
    else:
        hint = f"uevt cases --frozen > docs/frozen/{version('uevt')}.txt"
        assert file.read_text() == uevt("cases", "--frozen").out, hint


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_no_listed_case_is_gone(file: Path) -> None:
    """An id is stable for ever."""
    listed = FrozenList.read(file)
    assert listed.version == file.stem
    assert listed.text == file.read_text()
    assert len(listed.programs) > 3000
    assert listed.programs.keys() - {each.id for each in all_variants()} == set()


def test_a_part_of_the_list_is_printed(uevt: Uevt, tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text(uevt("cases", "--frozen", "-k", "write.returns_all_bytes").out)
    listed = FrozenList.read(file)
    assert listed.version == version("uevt")
    assert set(listed.programs) == {
        id for id in (each.id for each in all_variants()) if "write.returns_all_bytes" in id
    }
