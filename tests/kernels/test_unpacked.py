"""A malicious tarball writes nothing outside its tree."""

from __future__ import annotations

import contextlib
import io
import tarfile
from pathlib import Path

import pytest

from host.progress import silent
from kernels.errors import SourceUnavailable
from kernels.sources.offers import Offer
from kernels.sources.unpacked import SourceTrees
from kernels.store.store import Store


def _file(name: str, content: bytes = b"evil") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return member, content


def _link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


@pytest.mark.parametrize(
    "members",
    [
        [_file("../evil"), _file("linux/../../../evil")],
        [_file("{outside}/evil")],
        [_link("linux/out", "{outside}"), _file("linux/out/evil")],
        [_link("linux/up", "../../.."), _file("linux/up/evil")],
        [_link("linux/mine", "{outside}/mine", tarfile.LNKTYPE), _file("linux/mine")],
        [_link("linux/mine", "{outside}/mine"), _file("linux/mine")],
    ],
    ids=["above", "absolute", "through a link", "through a link up", "hard link", "over a link"],
)
def test_malicious_tarball_stays_in_its_tree(
    store: Store, tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    archive, fresh = tmp_path / "linux-6.1.tar.gz", tmp_path / "work" / "tree"
    fresh.parent.mkdir()
    with tarfile.open(archive, "w:gz") as tar:
        for member, content in [_file("linux/Makefile"), *members]:
            member.name = member.name.format(outside=outside)
            member.linkname = member.linkname.format(outside=outside)
            tar.addfile(member, io.BytesIO(content))
    offer = Offer("linux", "6.1", fetch_mib=0, fetch=lambda work: archive)
    store.root.mkdir(parents=True, exist_ok=True)
    # tar(1) may refuse.
    with contextlib.suppress(SourceUnavailable):
        SourceTrees(store, silent)._unpack(offer, archive, fresh)
    assert (outside / "mine").read_text() == "mine"
    assert [each.name for each in outside.iterdir()] == ["mine"]
    assert {each.name for each in fresh.parent.iterdir()} <= {"tree"}
    assert not list(tmp_path.glob("evil"))
