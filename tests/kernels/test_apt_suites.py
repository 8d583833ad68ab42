"""Finding the distribution's main archive among apt's sources, and writing it for a suite."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from kernels.errors import SourceUnavailable
from kernels.sources import apt_suites
from tests.shell_scripts import write_script

STANZAS = """\
# a comment, and a source that is not for us
Types: deb deb-src
URIs: https://packages.example/tool
Suites: bookworm
Components: main

Types: deb
# http://snapshot.example/archive
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://old.example/debian
Suites: bookworm
Components: main
Enabled: no
"""
LINES = """\
# deb http://commented.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64,i386 signed-by=/usr/share/keyrings/tool.gpg] http://tool.example bookworm stable
deb [ signed-by=/keys/a.gpg check-valid-until=no ] http://mirror.example/debian bookworm main # !
deb http://mirror.example/debian bookworm-updates main
deb http://mirror.example/debian-security bookworm-security main
"""


@pytest.fixture
def etc(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a sources.list and a sources.list.d, which apt-config prints."""
    etc = tmp_path / "etc"
    (etc / "sources.list.d").mkdir(parents=True)
    printed = f"LIST='{etc}/sources.list'\nPARTS='{etc}/sources.list.d/'"
    write_script(programs / "apt-config", f'echo "{printed}"')
    release = {"VERSION_CODENAME": "bookworm"}
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    return etc


def written(tmp_path: Path) -> str:
    """The sources of a private state for trixie-backports."""
    apt_suites.write(tmp_path, "trixie-backports")
    return apt_suites.path(tmp_path).read_text()


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        (
            "sources.list.d/debian.sources",
            STANZAS,
            "components: main contrib\n"
            "signed-by: \n"
            " -----BEGIN PGP PUBLIC KEY BLOCK-----\n"
            " .\n"
            " mQINBF\n"
            " -----END PGP PUBLIC KEY BLOCK-----\n",
        ),
        (
            "sources.list",
            LINES,
            "components: main\nsigned-by: /keys/a.gpg\ncheck-valid-until: no\n",
        ),
    ],
    ids=["stanza", "line"],
)
def test_a_source_keeps_all_but_its_suite(
    etc: Path, tmp_path: Path, name: str, text: str, kept: str
) -> None:
    (etc / name).write_text(text)
    assert written(tmp_path) == (
        f"types: deb\nuris: http://mirror.example/debian\nsuites: trixie-backports\n{kept}"
    )


def test_options_of_a_line_as_fields(tmp_path: Path) -> None:
    (tmp_path / "x.list").write_text(LINES)
    tool = next(iter(apt_suites.parse(tmp_path / "x.list")))
    assert tool["architectures"] == "amd64 i386"
    assert tool["signed-by"] == "/usr/share/keyrings/tool.gpg"


def test_third_party_source_is_not_the_distribution(etc: Path, tmp_path: Path) -> None:
    parts = etc / "sources.list.d"
    (parts / "a.list").write_text("deb http://party.example bookworm main\n")
    (parts / "b.list.disabled").write_text("deb http://off.example bookworm main\n")
    (parts / "debian.sources").write_text(STANZAS)
    assert "uris: http://mirror.example/debian\n" in written(tmp_path)


def test_first_main_archive_is_used_without_updates(etc: Path, tmp_path: Path) -> None:
    (etc / "sources.list").write_text("deb http://mirror.example/debian bookworm main\n")
    assert "uris: http://mirror.example/debian\n" in written(tmp_path)


@pytest.mark.parametrize("text", ["", "deb http://mirror.example/debian bullseye main\n"])
def test_missing_main_archive_is_an_error(etc: Path, tmp_path: Path, text: str) -> None:
    (etc / "sources.list").write_text(text)
    with pytest.raises(SourceUnavailable, match="has the suite bookworm") as caught:
        written(tmp_path)
    assert "add trixie-backports to this host's apt sources" in caught.value.hint
    assert not apt_suites.path(tmp_path).exists()
