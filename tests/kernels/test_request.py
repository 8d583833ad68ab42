"""Requests: kernel ids, labels, invalid files, and whom lost options are blamed on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from kernels.catalog.catalog import load_catalog
from kernels.catalog.flavours import FLAVOURS, flavour, names
from kernels.errors import BadCatalogEntry, BrokenFile, LostOptions, UnknownKernel, UserMistake
from kernels.kconfig import LostOption
from kernels.request import Request, label_of
from kernels.store.built_kernel import Recipe
from tests.kernels.fake_make import ENTRY, TEN


@pytest.fixture
def fragment(tmp_path: Path) -> Path:
    """A configuration fragment."""
    file = tmp_path / "my options.config"
    file.write_text("CONFIG_LATENCYTOP=y\n# CONFIG_IO_URING is not set\n")
    return file


def test_kernel_without_additions_is_the_catalog_entry() -> None:
    assert Request("6.12").entry() == load_catalog().find("6.12")


def test_id_names_all_additions(tmp_path: Path, fragment: Path) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text(TEN)
    entry = Request("6.12@6.12.115-2", (patch,), (fragment,), "fault").entry()
    assert entry.kernel_id == "6.12@6.12.115-2+fix+my-options~fault"
    assert entry.name == "6.12"
    assert (entry.of, entry.variant) == (None, False)


def test_id_is_a_valid_file_name(tmp_path: Path) -> None:
    """Five names of git format-patch are longer than a file name may be."""
    patches = [tmp_path / f"000{number}-{'tracing-user_events-' * 3}.patch" for number in range(5)]
    for patch in patches:
        patch.write_text(TEN)
    name = Request("6.12", tuple(patches), flavour="debug").entry().kernel_id
    assert re.fullmatch(
        r"6\.12\+0000-(tracing-user_events-)+[a-z_]*\+4-more-[0-9a-f]{8}~debug", name
    )
    assert len(name) < 100
    # Other names have other labels, equal names the same.
    assert name != Request("6.12", tuple(patches[:4]), flavour="debug").entry().kernel_id
    assert name == Request("6.12", tuple(patches), flavour="debug").entry().kernel_id
    assert len(label_of(["x" * 300])) < 100


def test_a_fragment_wins_over_the_catalog_and_the_flavour(tmp_path: Path, fragment: Path) -> None:
    fragment.write_text("# CONFIG_USER_EVENTS is not set\n# CONFIG_KASAN is not set\n")
    wanted = Request("6.12", configs=(fragment,), flavour="debug").entry().wanted
    assert "# CONFIG_USER_EVENTS is not set" in wanted
    assert "# CONFIG_KASAN is not set" in wanted
    assert not {"CONFIG_USER_EVENTS=y", "CONFIG_KASAN=y"} & set(wanted)


def test_additions_change_the_digest(fragment: Path) -> None:
    plain, added = Request("6.12").entry(), Request("6.12", configs=(fragment,)).entry()
    assert plain.digest() != added.digest()
    fragment.write_text("CONFIG_LATENCYTOP=y\n")
    assert Request("6.12", configs=(fragment,)).entry().digest() != added.digest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"CONFIG_A\n", "'CONFIG_A' is no configuration line"),
        (b"# nothing\n", "it sets no option"),
        (b"", "it sets no option"),
        (b"CONFIG_A=m\n", "CONFIG_A=m: the modules of a kernel are not built"),
        (b'CONFIG_A="\xff"\n', "it is not UTF-8"),
    ],
)
def test_invalid_fragment_is_refused(fragment: Path, content: bytes, message: str) -> None:
    fragment.write_bytes(content)
    with pytest.raises(BrokenFile) as caught:
        Request("6.12", configs=(fragment,)).entry()
    assert str(caught.value).startswith(f"{fragment}: {message}")
    assert caught.value.hint


def test_missing_file_is_refused(tmp_path: Path) -> None:
    for request in (
        Request("6.12", configs=(tmp_path / "absent",)),
        Request("6.12", patches=(tmp_path / "absent",)),
        Request("6.12", configs=(tmp_path,)),
    ):
        with pytest.raises(UserMistake, match=str(tmp_path)):
            request.entry()


def test_device_is_refused() -> None:
    """/dev/zero has no end."""
    for request in (
        Request("6.12", configs=(Path("/dev/null"),)),
        Request("6.12", patches=(Path("/dev/null"),)),
    ):
        with pytest.raises(BrokenFile, match="not a regular file"):
            request.entry()


def test_unknown_kernel_and_flavour_are_refused() -> None:
    with pytest.raises(UnknownKernel):
        Request("6.1200").entry()
    with pytest.raises(UserMistake, match="unknown flavour 'debgu'") as caught:
        Request("6.12", flavour="debgu").entry()
    assert caught.value.hint == "did you mean debug?"


# Lost options


OTHER = LostOption("CONFIG_OTHER", "y", None)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (OTHER, "this kernel drops options that it sets: CONFIG_OTHER (wanted y) is absent"),
        (
            LostOption("CONFIG_9P_FS", "y", None),
            "it disables what guests and cases need: CONFIG_9P_FS",
        ),
        (
            LostOption("CONFIG_INPUT", "n", "y"),
            "it selects what guests are built without: CONFIG_INPUT (wanted n)",
        ),
    ],
    ids=["set by a fragment", "disabled dependency", "selected"],
)
def test_lost_option_is_blamed_on_its_fragment(
    tmp_path: Path, fragment: Path, option: LostOption, message: str
) -> None:
    other = tmp_path / "other.config"
    other.write_text("CONFIG_OTHER=y\n")
    configs = (fragment, other) if option is OTHER else (fragment,)
    blamed = Request("6.12", configs=configs).blame(LostOptions([option]))
    assert isinstance(blamed, BrokenFile)
    assert str(blamed).startswith(f"{configs[-1]}: {message}")


def test_lost_options_without_fragments_are_kernel_trouble() -> None:
    error = LostOptions([OTHER])
    assert Request("6.12", flavour="debug").blame(error) is error


# Flavours


@pytest.mark.parametrize("name", names())
def test_flavour_changes_configuration_and_needs(name: str) -> None:
    found = flavour(name)
    assert found.memory_mib >= 512
    assert found.slowness >= 1
    entry = Request("6.12", flavour=name).entry()
    assert entry.kernel_id == f"6.12~{name}"
    assert entry.make == found.make
    assert entry.needs.objects_mib >= load_catalog().find("6.12").needs.objects_mib


def test_shipped_flavours() -> None:
    assert names() == ("debug", "fault", "gcov")
    assert {file.stem for file in FLAVOURS.glob("*.toml")} == set(names())
    assert flavour("gcov").make == ("GCOV_PROFILE_trace_events_user.o=y",)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("memory_mib = 1\nslowness = 1\n", "objects_mib: is missing"),
        ("memory_mib = 1\nslowness = 1\nobjects_mib = 1\nmade = []\n", "made: is not known"),
        (
            'memory_mib = 1\nslowness = 1\nobjects_mib = 1\nmake = ["vmlinux"]\n',
            "make: 'vmlinux' would be a target",
        ),
    ],
)
def test_table_of_a_flavour_is_checked(tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "x.config").write_text("CONFIG_A=y\n")
    (tmp_path / "x.toml").write_text(table)
    with pytest.raises(BadCatalogEntry, match=message):
        flavour("x", tmp_path)


def test_words_for_make_are_part_of_the_key() -> None:
    recipe = Recipe("linux", "9.9", ("CONFIG_A=y",), "", "gcc")
    assert replace(ENTRY, make=("A=y",)).digest() != ENTRY.digest()
    # Keys of stores from before `make` existed stay valid.
    assert recipe.key == "11f5ef9f15da21e00ab74128f045204769579027871a2db0ab47b092fa3f3269"
