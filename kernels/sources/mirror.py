"""kernel.org's tarballs, from there or from any copy of it: UEVT_MIRROR is its base address.

A directory of it (v6.x/) has sha256sums.asc: every file's digest, signed by kernel.org.  It says
what is offered, and what was fetched has to be what it says.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from host.deadline import Deadline
from host.progress import Progress, Step
from kernels.catalog.entries import NEWEST, Source
from kernels.catalog.versions import order, tarball_of, wants
from kernels.errors import SourceUnavailable
from kernels.sources.download import Broken, Download, NotThere
from kernels.sources.versions_offered import Offer
from kernels.store.store import Store
from kernels.tools import child_process

VARIABLE = "UEVT_MIRROR"
KERNEL_ORG = "https://cdn.kernel.org/pub/linux/kernel"

CHECKSUMS = "sha256sums.asc"
# "Kernel.org checksum autosigner", https://www.kernel.org/signature.html
AUTOSIGNER = "B8868C80BA62A1FFFAF5FDA9632D3A06589DA6B1"
ASK_S = 60.0
FETCH_S = 2 * 3600.0
VERIFY_S = 60.0
# An xz of 6.18, rounded up: sizes are not in the list.
_TARBALL_MIB = 170
# The directory that "the newest" is looked for in first, and then in those after it.
_NEWEST_MAJOR = 7

_MEND = (
    f"check the network, set {VARIABLE} to a copy of {KERNEL_ORG},"
    " or UEVT_TARBALLS to a directory of tarballs"
)
_MEND_WRONG = f"try again later, or set {VARIABLE} to another copy of {KERNEL_ORG}"

_LINE = re.compile(r"^([0-9a-f]{64})  (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mirror:
    """One base address."""

    base: str
    store: Store
    progress: Progress

    @classmethod
    def configured(cls, store: Store, progress: Progress) -> Mirror:
        """The one that UEVT_MIRROR names, else kernel.org."""
        return cls((os.environ.get(VARIABLE) or KERNEL_ORG).rstrip("/"), store, progress)

    def offers(self, source: Source) -> tuple[Offer, ...]:
        """Every tarball of a series there, the newest first.

        Call with the store locked.  Raises SourceUnavailable when the mirror does not answer.
        """
        if source.series != NEWEST:
            return self._offers_in(f"v{str(source.series).partition('.')[0]}.x", source)
        found: tuple[Offer, ...] = ()
        for major in range(_NEWEST_MAJOR, _NEWEST_MAJOR + 100):
            offers = self._offers_in(f"v{major}.x", source)
            if not offers:
                break
            found = (*offers, *found)
        return found

    def _offers_in(self, directory: str, source: Source) -> tuple[Offer, ...]:
        versions: dict[str, tuple[str, str]] = {}
        for digest, name in _LINE.findall(self._checksums(directory)):
            match = tarball_of(name)
            # Both compressions are offered; the smaller one is asked for.
            if match and name.endswith(".xz") and wants(source, match):
                versions[match[1]] = (name, digest)
        return tuple(
            Offer(
                source.package,
                version,
                fetch_mib=_TARBALL_MIB,
                fetch=partial(self._fetch, f"{directory}/{versions[version][0]}", digest),
            )
            for version in sorted(versions, key=_order_of, reverse=True)
            for digest in (versions[version][1],)
        )

    def _checksums(self, directory: str) -> str:
        """The list of a directory, "" where there is no such directory."""
        with self.store.workspace("checksums") as work:
            file = work / CHECKSUMS
            deadline = Deadline(ASK_S, f"asking {self.base}/{directory}")
            try:
                Download(
                    f"{self.base}/{directory}/{CHECKSUMS}", file, deadline, self.progress
                ).run()
            except NotThere:
                return ""
            except Broken as error:
                raise SourceUnavailable(f"{self.base} does not answer: {error}", _MEND) from error
            return self._signed(file, directory)

    def _signed(self, file: Path, directory: str) -> str:
        """The text of a list, less what its signature does not cover where that is checked."""
        text = file.read_text("utf-8", errors="replace")
        deadline = Deadline(VERIFY_S, "checking a signature")
        if shutil.which("gpg") is None:
            self._unchecked(directory, "gpg is not installed")
            return text
        signed = file.with_suffix(".txt")
        argv = ["gpg", "--batch", "--no-auto-key-retrieve", "--status-fd", "1"]
        said = child_process.answer(
            [*argv, "--output", str(signed), "--decrypt", str(file)],
            deadline=deadline,
            # Where the user's keyring is.
            env=child_process.environment(**child_process.inherited(["GNUPGHOME"])),
        )
        status = [line.removeprefix("[GNUPG:] ").split() for line in said.splitlines()]
        if any(words[:1] == ["BADSIG"] for words in status):
            raise SourceUnavailable(
                f"{self.base}/{directory}/{CHECKSUMS} is not what was signed", _MEND_WRONG
            )
        # The last word is the primary key, the signature being by one of its subkeys.
        valid = [words for words in status if words[:1] == ["VALIDSIG"]]
        if any(AUTOSIGNER in (words[1], words[-1]) for words in valid) and signed.is_file():
            return signed.read_text("utf-8", errors="replace")
        other = f"signed by {valid[0][-1]}" if valid else "your keyring lacks the key that signs"
        self._unchecked(directory, f"{other}; kernel.org's is {AUTOSIGNER}")
        return text

    def _unchecked(self, directory: str, why: str) -> None:
        phase = f"{directory}/{CHECKSUMS}: signature not checked ({why})"
        self.progress(Step(phase))

    def _fetch(self, path: str, digest: str, work: Path) -> Path:
        """Have a tarball in a scratch directory; what arrives of it outlives that."""
        name = path.rpartition("/")[2]
        self.store.downloads.mkdir(parents=True, exist_ok=True)
        deadline = Deadline(FETCH_S, f"fetching {name}")
        url = f"{self.base}/{path}"
        download = Download(url, self.store.downloads / name, deadline, self.progress)
        try:
            tarball = download.run()
        except Broken as error:
            raise SourceUnavailable(
                f"fetching {url} failed: {error}",
                f"try again, it goes on from where it broke off; or set {VARIABLE}",
            ) from error
        with tarball.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            download.discard()
            raise SourceUnavailable(
                f"{url} has sha256 {found[:16]}…, its {CHECKSUMS} says {digest[:16]}…;"
                " what was fetched is removed",
                _MEND_WRONG,
            )
        return tarball.rename(work / name)


def _order_of(version: str) -> tuple[int, ...]:
    match = tarball_of(f"linux-{version}.tar.xz")
    assert match is not None
    return order(match)
