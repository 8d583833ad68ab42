"""What an objects directory was built from: the configuration and the patched files.

make compares times, and patching breaks them: a patch that is edited and edited back gives old
content a new time, one that is removed gives new content an old time.  So times follow content: a
file keeps the time it was compiled with as long as its content is the same, else it gets the
current time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, convert, to_builtins

from host.files import digest_of, read_record, write_record

FILE = ".uevt-made-from"

ABSENT = "absent"
# A build that failed may have compiled either content.
UNKNOWN = "unknown"


class Seen(Struct, frozen=True):
    """A source file as make saw it: sha256 of its content (or ABSENT, UNKNOWN), and its time."""

    digest: str
    mtime_ns: int = 0

    @classmethod
    def of(cls, file: Path) -> Seen:
        """The file as it is now."""
        if not file.is_file():
            return cls(ABSENT)
        return cls(digest_of(file), file.stat().st_mtime_ns)


class LastBuild(Struct, frozen=True):
    """The last build in a directory that make ended by itself.

    `key` is the recipe's, "" if it has no image.  `config` is the digest of the .config made from
    `wanted`, from the tree's `revision`; `patched` are the files that differ from the tree's own.
    `tree` and `objects` are the directories that make wrote into its command lines.  "" is unknown.
    """

    key: str
    wanted: tuple[str, ...]
    config: str
    patched: Mapping[str, Seen]
    tree: str = ""
    objects: str = ""
    revision: str = ""

    @classmethod
    def read(cls, objects: Path) -> LastBuild | None:
        """The record of a directory, or None."""
        data = read_record(objects / FILE)
        if data is None:
            return None
        try:
            return convert(data, cls)
        except ValueError:  # also text that is no UTF-8
            return None

    def write(self, objects: Path) -> None:
        """Write the record atomically."""
        write_record(objects / FILE, to_builtins(self))


UNRECORDED = LastBuild(key="", wanted=(), config="", patched={})
"""Of objects about which nothing is known."""
