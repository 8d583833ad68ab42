"""A patch of the catalog or of the user."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

# Keeps bytes that are not UTF-8, such as a name in an old file's comment.
ENCODING = {"encoding": "utf-8", "errors": "surrogateescape"}


class Patch(Struct, frozen=True):
    """A unified diff with paths for `patch -p1`, or a semantic patch.

    `file` is the user's file, None for a patch of the catalog.  `places` are the files and
    directories that a semantic patch runs over; the default are those of user_events
    (`kernels.patches.coccinelle`).
    """

    name: str
    text: str
    file: Path | None = None
    semantic: bool = False
    places: tuple[str, ...] = ()

    @property
    def identity(self) -> bytes:
        """Everything that determines the patched source."""
        text = "\n".join((self.text, "spatch", *self.places)) if self.semantic else self.text
        return text.encode(**ENCODING)
