"""Fake sources of kernels: tarballs of one file, and apt programs that serve one of them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from host.progress import Step, silent
from kernels.catalog.entries import KernelEntry
from kernels.sources.unpacked import SourceTrees
from kernels.store.store import Store
from tests.shell_scripts import lines_of, write_script

PACKAGE = "linux-source-9.9"
MTIME = 12345

# Each reads files in its own directory: `host` and `private` hold the lists' text, `upstream` the
# result of an update, `archive` the versions that can still be downloaded.
PROGRAMS = {
    "apt-cache": """\
echo "$*" >> {fake}/queries
case "$*" in
*Dir::State=*) cat {fake}/private 2>/dev/null ;;
*) cat {fake}/host 2>/dev/null ;;
esac
""",
    "apt-get": """\
echo "$@" >> {fake}/diary
for last; do :; done
case "$*" in
*update*) cp {fake}/upstream {fake}/private; exit 100 ;;
*download*)
    if grep -qx "$last" {fake}/archive; then echo deb > ./package.deb
    else echo "E: Failed to fetch $last  404  Not Found"; exit 100
    fi ;;
esac
""",
    "apt-config": "exit 1\n",
    "dpkg-deb": """\
test "$1" = -x || exit 1
mkdir -p "$3/usr/src" && cp {fake}/source.tar.xz "$3/usr/src/linux-source-9.9.tar.xz"
""",
}


def tarball(top: str, version: str, compression: str = "xz", padding: bytes = b"") -> bytes:
    """A source tree of one file, compressed."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=f"w:{compression}") as archive:  # type: ignore[call-overload]
        content = f"VERSION = {version}\n".encode() + padding
        member = tarfile.TarInfo(f"{top}/Makefile")
        member.size, member.mtime = len(content), MTIME
        archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def obtained(entry: KernelEntry, store: Store, steps: list[Step] | None = None) -> Path:
    """Resolve and obtain the tree of an entry under the store's lock."""
    trees = SourceTrees(store, silent if steps is None else steps.append)
    with store.locked("a test", silent):
        return trees.obtain(entry, trees.resolve(entry))


class FakeApt:
    """The directory of the programs and their data."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name, text in PROGRAMS.items():
            write_script(directory / name, text.format(fake=directory))
        (directory / "source.tar.xz").write_bytes(tarball(PACKAGE, "9"))
        self.lists("upstream")

    def lists(self, which: str, *versions: str) -> None:
        """Let a list offer these versions, the candidate first."""
        stanzas = [f"Package: {PACKAGE}\nVersion: {v}\nSize: 1048576\n" for v in versions]
        (self.directory / which).write_text("\n".join(stanzas))

    def offer(self, which: str, *versions: str) -> None:
        """The same, and let these versions be downloaded."""
        self.lists(which, *versions)
        lines = [f"{PACKAGE}={version}\n" for version in versions]
        (self.directory / "archive").write_text("".join(lines))

    @property
    def queries(self) -> list[str]:
        """The arguments of every apt-cache call."""
        return lines_of(self.directory / "queries")

    @property
    def diary(self) -> list[str]:
        """The last word of every apt-get call."""
        return [line.split()[-1] for line in lines_of(self.directory / "diary")]
