"""The shipped catalog, finding entries, and errors that name file, key and hint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.abi.profile import NAMED
from kernels.catalog.catalog import ABIS, VARIANTS, load_catalog
from kernels.catalog.entries import KernelEntry
from kernels.errors import BadCatalogEntry, UnknownKernel, UserMistake

GOOD = """
name = "9.9"
abi = "release"
fragments = ["guest"]
[source]
kind = "debian-source"
package = "linux-source-9.9"
[needs]
tree_mib = 10
objects_mib = 5
"""


VARIANT = 'name = "9.9-x"\nof = "9.9"\n'


def written(directory: Path, text: str, name: str = "9.9") -> Path:
    """Write a catalog file."""
    file = directory / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    return file


def loaded(directory: Path, text: str) -> KernelEntry:
    """The entry of a catalog that has only this one."""
    written(directory, text)
    return load_catalog(directory).find("9.9")


def test_kernel_without_user_events_is_built_only_by_name() -> None:
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


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        *((name, "") for name in ("6.21", "6.12@", "6.12@../../etc", "", "6.12@a b")),
        ("6.12-witout-user-events", "did you mean 6.12-without-user-events?"),
    ],
)
def test_an_unknown_kernel_lists_the_known_ones(name: str, hint: str) -> None:
    with pytest.raises(UnknownKernel) as caught:
        load_catalog().find(name)
    assert isinstance(caught.value, UserMistake)
    assert repr(name) in str(caught.value)
    assert hint in caught.value.hint
    assert hint or {"6.12", "6.12-without-user-events"} <= set(
        re.split(r"[ ,]+", caught.value.hint)
    )


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
    entry = loaded(tmp_path, GOOD.replace('"release"', f'"{abi}"'))
    assert entry.abi_for(release) == expected


def test_switches_follow_the_abi(tmp_path: Path) -> None:
    text = GOOD.replace('abi = "release"', 'abi = "release"\ndiffers = ["a=no", "b=yes"]')
    assert loaded(tmp_path, text).abi_for("9.9.3-uevt") == "9.9.3,a=no,b=yes"


@pytest.mark.parametrize(
    ("old", "new", "key", "hint"),
    [
        ('name = "9.9"', "", "name", "add name"),
        ('name = "9.9"', "name = 9.9", "name", 'name = "…"'),
        ('name = "9.9"', 'name = "9/9"', "name", "use only a-z"),
        ('name = "9.9"', 'name = "9.8"', "name", 'write name = "9.9"'),
        ('abi = "release"', "abi = []", "abi", 'abi = "…"'),
        ('abi = "release"', 'abbi = "release"', "abi", "rename abbi to abi"),
        ('abi = "release"', "", "abi", "add abi"),
        ('"release"', '"relase"', "abi", "did you mean release?"),
        ('"release"', '"5"', "abi", "such as 6.8, or release, byte-status"),
        ('["guest"]', '["guets"]', "fragments", "choose from: before-6.4, guest"),
        ('["guest"]', '"guest"', "fragments", 'fragments = ["…"]'),
        ('["guest"]', '["guest"]\npatches = ["nope"]', "patches", "nope.patch"),
        ('["guest"]', '["guest"]\ndefault = 1', "default", "default = true"),
        ("[source]", "[sauce]", "source", "add source"),
        ('"debian-source"', '"git"', "source.kind", 'kind = "debian-source" or "tarball"'),
        ('"debian-source"', '"tarball"', "source.series", "add series"),
        ('kind = "debian-source"\n', 'kind = "tarball"\nseries = "6"\n', "source.series", '"6.1"'),
        ('"debian-source"', '"debian-source"\nsuite = "a b"', "source.suite", "use only a-z"),
        ('abi = "release"', 'of = "9.8"', "of", "choose from: "),
        ('["guest"]', '["guest"]\ndiffers = ["a=maybe"]', "differs", '["SWITCH=no"]'),
        ('["guest"]', '["guest"]\ndiffers = "a=no"', "differs", 'differs = ["…"]'),
        ('"linux-source-9.9"', '"-o evil"', "source.package", "use only a-z"),
        ('"debian-source"', '"debian-source"\nurl = "x"', "source.url", "remove it"),
        ("tree_mib = 10", 'tools = ["gcc"]', "needs.tools", "use one of"),
        ("tree_mib = 10", "tree_mib = -1", "needs.tree_mib", "tree_mib = 100"),
        ("tree_mib = 10", "tree_mib = true", "needs.tree_mib", "tree_mib = 100"),
        ('name = "9.9"', "name = ", "", "syntax"),
        # A variant.
        ('of = "9.9"', 'of = "9.7"', "of", ""),
        ('of = "9.9"', 'of = "9.9-x"', "of", ""),
        ('of = "9.9"', 'of = "9.9"\nfragments = ["guest"]', "fragments", ""),
        ('of = "9.9"', 'of = "9.9"\npatches = ["nope"]', "patches", ""),
        ('of = "9.9"', 'of = "9.9"\nabi = "byte_status"', "abi", ""),
        ('of = "9.9"', 'of = "9.9"\ndiffers = ["a"]', "differs", ""),
    ],
)
def test_invalid_entry_names_file_key_and_hint(
    tmp_path: Path, old: str, new: str, key: str, hint: str
) -> None:
    name, text = ("9.9", GOOD) if old in GOOD else ("9.9-x", VARIANT)
    assert old in text
    written(tmp_path, GOOD)
    file = written(tmp_path, text.replace(old, new, 1), name)
    with pytest.raises(BadCatalogEntry) as caught:
        load_catalog(tmp_path).find(name)
    assert caught.value.file == file
    assert caught.value.key == key
    assert str(file) in str(caught.value)
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value) + caught.value.hint


def test_an_invalid_entry_stops_only_its_kernel_and_its_variants(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD.replace("[source]", "[sauce]"))
    written(tmp_path, VARIANT, "9.9-x")
    written(tmp_path, GOOD.replace('"9.9"', '"9.8"', 1), "9.8")
    catalog = load_catalog(tmp_path)
    assert catalog.find("9.8").name == "9.8"
    for name in ("9.9", "9.9@9.9.1", "9.9-x"):
        with pytest.raises(BadCatalogEntry, match=str(file)):
            catalog.find(name)
    with pytest.raises(BadCatalogEntry):
        catalog.default()


def test_variant_inherits_from_its_base(tmp_path: Path) -> None:
    written(tmp_path, GOOD)
    written(tmp_path, VARIANT + 'abi = "byte-status"\ndiffers = ["a=no"]\n', "9.9-x")
    catalog = load_catalog(tmp_path)
    base, variant = catalog.find("9.9"), catalog.find("9.9-x")
    assert (variant.of, variant.variant, base.variant) == ("9.9", True, False)
    assert (variant.source, variant.wanted, variant.needs) == (base.source, base.wanted, base.needs)
    assert variant.abi_for("9.9.3") == "byte-status,a=no"
    assert base.abi_for("9.9.3") == "9.9.3"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('kind = "debian-source"\npackage = "linux-source-9.9"', "linux-source-9.9"),
        (
            'kind = "debian-source"\npackage = "linux-source-9.9"\nsuite = "trixie-backports"',
            "linux-source-9.9 in trixie-backports",
        ),
        ('kind = "tarball"\nseries = "9.9"', "tarball of 9.9"),
        ('kind = "tarball"\nseries = "newest"', "any tarball"),
    ],
)
def test_source_as_text(tmp_path: Path, source: str, text: str) -> None:
    debian = 'kind = "debian-source"\npackage = "linux-source-9.9"'
    found = loaded(tmp_path, GOOD.replace(debian, source)).source
    assert str(found) == text
    if found.kind == "tarball":
        assert found.package == "linux"


def test_directory_without_readable_entries_is_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(BadCatalogEntry, match="holds no"):
        load_catalog(tmp_path)
    (tmp_path / "9.9.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadCatalogEntry, match="is not TOML"):
        load_catalog(tmp_path).find("9.9")


def test_named_abis_are_those_of_the_suite() -> None:
    assert set(ABIS) == set(NAMED)


def test_every_patch_belongs_to_an_entry() -> None:
    used = {patch.name for entry in load_catalog().entries.values() for patch in entry.patches}
    assert used == {file.stem for file in VARIANTS.glob("*.patch")}


@pytest.mark.parametrize(
    ("revision", "series", "like"),
    [
        ("6.12.50", "6.12", "6.12"),
        ("6.18-rc7", "6.18", "6.18"),
        ("5.18", "5.18", "5.18"),
        ("5.15.3", "5.15", "mainline"),
        ("99.1", "99.1", "mainline"),
        ("7", "newest", "mainline"),
        ("", "newest", "mainline"),
    ],
)
def test_mainline_at_any_release(revision: str, series: str, like: str) -> None:
    """Its series decides its directory on kernel.org and its configuration."""
    catalog = load_catalog()
    entry = catalog.find(f"mainline@{revision}" if revision else "mainline")
    assert (entry.source.series, entry.revision) == (series, revision or None)
    assert (entry.source.kind, entry.default) == ("tarball", False)
    assert entry.kernel_id == (f"mainline@{revision}" if revision else "mainline")
    assert entry.wanted == catalog.find(like).wanted


def test_revision_of_another_series_keeps_the_source() -> None:
    assert load_catalog().find("6.13@6.12.50").source.series == "6.13"
