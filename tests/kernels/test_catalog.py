"""The catalog: what ships, finding by name, and errors that name file, key and mend."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.catalog import CATALOG, load_catalog, load_entry
from kernels.errors import BadCatalogEntry, UnknownKernel, UserMistake

GOOD = """
name = "9.9"
abi = "release"
fragments = ["guest"]
[source]
kind = "debian-source"
package = "linux-source-9.9"
[needs]
tools = ["gcc"]
tree_mib = 10
objects_mib = 5
"""


def written(directory: Path, text: str) -> Path:
    """A catalog file `9.9.toml` of that text."""
    file = directory / "9.9.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_catalog_that_ships_has_6_12() -> None:
    catalog = load_catalog()
    entry = catalog.find("6.12")
    assert entry.kernel_id == "6.12"
    assert entry.source.package == "linux-source-6.12"
    assert "CONFIG_USER_EVENTS=y" in entry.wanted
    assert entry in catalog.default()


def test_the_kernel_without_user_events_is_built_only_on_demand() -> None:
    catalog = load_catalog()
    entry = catalog.find("6.12-without-user-events")
    assert "# CONFIG_USER_EVENTS is not set" in entry.wanted
    assert entry not in catalog.default()
    assert entry.digest() != catalog.find("6.12").digest()


def test_a_revision_is_part_of_the_id_and_of_the_digest() -> None:
    catalog = load_catalog()
    entry = catalog.find("6.12@6.12.115-2")
    assert (entry.name, entry.revision) == ("6.12", "6.12.115-2")
    assert entry.kernel_id == "6.12@6.12.115-2"
    assert entry.digest() != catalog.find("6.12").digest()


@pytest.mark.parametrize("name", ["6.21", "6.12@", "6.12@../../etc", "", "6.12@a b"])
def test_an_unknown_kernel_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownKernel) as caught:
        load_catalog().find(name)
    assert isinstance(caught.value, UserMistake)
    assert repr(name) in str(caught.value)
    assert "6.12, 6.12-without-user-events" in caught.value.mend


def test_an_unknown_kernel_offers_the_closest() -> None:
    with pytest.raises(UnknownKernel) as caught:
        load_catalog().find("6.12-witout-user-events")
    assert caught.value.closest == "6.12-without-user-events"
    assert "did you mean 6.12-without-user-events?" in caught.value.mend


@pytest.mark.parametrize(
    ("abi", "release", "expected"),
    [
        ("release", "6.12.117", "6.12.117"),
        ("release", "6.12.117-uevt+", "6.12.117"),
        ("release", "6.13.0-rc2-dirty", "6.13.0-rc2"),
        ("release", "7.3", "7.3"),
        ("byte-status", "6.1.192", "byte-status"),
    ],
)
def test_abi_release_is_the_upstream_part_of_the_built_release(
    tmp_path: Path, abi: str, release: str, expected: str
) -> None:
    entry = load_entry(written(tmp_path, GOOD.replace('"release"', f'"{abi}"')))
    assert entry.abi_for(release) == expected


@pytest.mark.parametrize(
    ("old", "new", "key", "mend"),
    [
        ('name = "9.9"', "", "name", "add name"),
        ('name = "9.9"', "name = 9.9", "name", 'write name = "…"'),
        ('name = "9.9"', 'name = "9/9"', "name", "use only a-z"),
        ('name = "9.9"', 'name = "9.8"', "name", 'write name = "9.9"'),
        ('abi = "release"', "abi = []", "abi", 'write abi = "…"'),
        ('abi = "release"', 'abbi = "release"', "abbi", "did you mean abi?"),
        ('["guest"]', '["guets"]', "fragments", "choose from: guest,"),
        ('["guest"]', '"guest"', "fragments", 'write fragments = ["…"]'),
        ('["guest"]', '["guest"]\npatches = ["nope"]', "patches", "nope.patch"),
        ('["guest"]', '["guest"]\ndefault = 1', "default", "write default = true"),
        ("[source]", "[sauce]", "source", "add source"),
        ('"debian-source"', '"git"', "source.kind", 'write kind = "debian-source"'),
        ('"linux-source-9.9"', '"-o evil"', "source.package", "use only a-z"),
        ('"debian-source"', '"debian-source"\nurl = "x"', "source.url", "remove it"),
        ('["gcc"]', '["clang"]', "needs.tools", "kernels/tools.py"),
        ("tree_mib = 10", "tree_mib = -1", "needs.tree_mib", "write tree_mib = 100"),
        ("tree_mib = 10", "tree_mib = true", "needs.tree_mib", "write tree_mib = 100"),
        ("objects_mib = 5", "", "needs.objects_mib", "add objects_mib"),
        ('name = "9.9"', "name = ", "", "correct the syntax"),
    ],
)
def test_a_bad_entry_names_file_key_and_mend(
    tmp_path: Path, old: str, new: str, key: str, mend: str
) -> None:
    assert old in GOOD
    file = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(BadCatalogEntry) as caught:
        load_catalog(tmp_path)
    assert caught.value.file == file
    assert caught.value.key == key
    assert str(file) in str(caught.value)
    assert mend in caught.value.mend
    assert "\n" not in str(caught.value) + caught.value.mend


def test_bytes_that_are_no_text_are_bad_toml(tmp_path: Path) -> None:
    (tmp_path / "9.9.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadCatalogEntry, match="not valid TOML"):
        load_catalog(tmp_path)


def test_an_empty_directory_is_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(BadCatalogEntry, match="holds no"):
        load_catalog(tmp_path)


def test_every_entry_that_ships_is_named_like_its_file() -> None:
    assert set(load_catalog().entries) == {file.stem for file in CATALOG.glob("*.toml")}
