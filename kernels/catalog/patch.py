"""A change to a kernel's source: what it says, and whose it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Bytes that are no UTF-8 (a name in an old file's comment) survive reading and writing.
ENCODING = {"encoding": "utf-8", "errors": "surrogateescape"}


@dataclass(frozen=True, slots=True)
class Patch:
    """A unified diff with paths as `patch -p1` takes them, or a semantic patch.

    `file` is what the user gave, None for a patch of the catalog.  `places` are the files and
    directories that a semantic patch is run over; one that names none is given those of
    user_events (see `kernels.patches.coccinelle`).
    """

    name: str
    text: str
    file: Path | None = None
    semantic: bool = False
    places: tuple[str, ...] = ()

    @property
    def identity(self) -> bytes:
        """All of it that decides what the source becomes."""
        said = "\n".join((self.text, "spatch", *self.places)) if self.semantic else self.text
        return said.encode(**ENCODING)


def digest_of_all(patches: Iterable[Patch]) -> str:
    """sha256 over patches in their order; "" for none."""
    said = [patch.identity for patch in patches]
    return hashlib.sha256(b"\0".join(said)).hexdigest() if said else ""
