"""Tarballs of kernel.org or of a mirror, whose base address is UEVT_MIRROR.

Each directory (v6.x/) has sha256sums.asc, signed by kernel.org.  It lists the offers, and a
download must match its digest.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import partial
from pathlib import Path

from msgspec import Struct

from host.deadline import Deadline
from host.files import digest_of
from host.progress import Progress, Step
from kernels.catalog.entries import NEWEST, Source
from kernels.errors import SourceUnavailable
from kernels.sources.download import Broken, Download, NotThere
from kernels.sources.offers import Offer
from kernels.sources.tarball_names import newest_first
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
# A .tar.xz of 6.18, rounded up: the list has no sizes.
_TARBALL_MIB = 170
# The first directory to search for the newest release; later ones follow.
_NEWEST_MAJOR = 7

_HINT = (
    f"check the network, set {VARIABLE} to a mirror of {KERNEL_ORG},"
    " or UEVT_TARBALLS to a directory of tarballs"
)
_HINT_WRONG = f"try again later, or set {VARIABLE} to another mirror of {KERNEL_ORG}"

_LINE = re.compile(r"^([0-9a-f]{64})  (\S+)$", re.MULTILINE)


class Mirror(Struct, frozen=True):
    """A mirror."""

    base: str
    store: Store
    progress: Progress

    @classmethod
    def configured(cls, store: Store, progress: Progress) -> Mirror:
        """The mirror of UEVT_MIRROR, else kernel.org."""
        return cls((os.environ.get(VARIABLE) or KERNEL_ORG).rstrip("/"), store, progress)

    def offers(self, source: Source) -> tuple[Offer, ...]:
        """Every tarball of a series, the newest first.

        The store must be locked.  Raises SourceUnavailable if the mirror does not answer.
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
        # Of both compressions, take the smaller.
        digests = {
            name: digest
            for digest, name in _LINE.findall(self._checksums(directory))
            if name.endswith(".xz")
        }
        return tuple(
            Offer(
                source.package,
                version,
                fetch_mib=_TARBALL_MIB,
                fetch=partial(self._fetch, f"{directory}/{name}", digests[name]),
            )
            for version, name in newest_first(source, digests).items()
        )

    def _checksums(self, directory: str) -> str:
        """The list of a directory, "" if no such directory."""
        with self.store.workspace() as work:
            file = work / CHECKSUMS
            deadline = Deadline(ASK_S, f"asking {self.base}/{directory}")
            url = f"{self.base}/{directory}/{CHECKSUMS}"
            try:
                Download(url, file, deadline, self.progress).run()
            except NotThere:
                return ""
            except Broken as error:
                raise SourceUnavailable(f"{self.base} does not answer: {error}", _HINT) from error
            return self._signed(file, directory)

    def _signed(self, file: Path, directory: str) -> str:
        """The text of a list; only its signed part if the signature can be checked."""
        text = file.read_text("utf-8", errors="replace")
        deadline = Deadline(VERIFY_S, "checking a signature")
        if shutil.which("gpg") is None:
            self._warn_unchecked(directory, "gpg is not installed")
            return text
        signed = file.with_suffix(".txt")
        argv = ["gpg", "--batch", "--no-auto-key-retrieve", "--status-fd", "1"]
        output = child_process.answer(
            [*argv, "--output", str(signed), "--decrypt", str(file)],
            deadline=deadline,
            # The place of the user's keyring.
            env=child_process.environment(**child_process.inherited(["GNUPGHOME"])),
        )
        status = [line.removeprefix("[GNUPG:] ").split() for line in output.splitlines()]
        if any(words[:1] == ["BADSIG"] for words in status):
            raise SourceUnavailable(
                f"{self.base}/{directory}/{CHECKSUMS} has a bad signature", _HINT_WRONG
            )
        # The last word is the primary key; the signature is by a subkey.
        valid = [words for words in status if words[:1] == ["VALIDSIG"]]
        if any(AUTOSIGNER in (words[1], words[-1]) for words in valid) and signed.is_file():
            return signed.read_text("utf-8", errors="replace")
        other = f"signed by {valid[0][-1]}" if valid else "your keyring lacks the key that signs"
        self._warn_unchecked(directory, f"{other}; kernel.org's is {AUTOSIGNER}")
        return text

    def _warn_unchecked(self, directory: str, why: str) -> None:
        self.progress(Step(f"{directory}/{CHECKSUMS}: signature not checked ({why})"))

    def _fetch(self, path: str, digest: str, work: Path) -> Path:
        """Download a tarball into a scratch directory; a partial download is kept elsewhere."""
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
                f"try again: the download resumes; or set {VARIABLE}",
            ) from error
        found = digest_of(tarball)
        if found != digest:
            download.discard()
            raise SourceUnavailable(
                f"{url} has sha256 {found[:16]}…, but {CHECKSUMS} has {digest[:16]}…;"
                " the download is removed",
                _HINT_WRONG,
            )
        return tarball.rename(work / name)
