"""What an objects directory was made from: the configuration, and the files seen patched.

make compares times, and the times of a patched file say nothing: a patch that is edited and
edited back gives an old content a new time, one that is taken away gives a new content an old
time.  So times follow content: a file gets the time it was compiled with as long as its content
is what was compiled, and today's when it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from host.files import digest_of, read_record, write_record

FILE = ".uevt-made-from"

ABSENT = "absent"
# A build that did not end well may have compiled this content or that.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Seen:
    """A source file as make saw it: sha256 of its content (or ABSENT, UNKNOWN), and its time."""

    digest: str
    mtime_ns: int = 0

    @classmethod
    def of(cls, file: Path) -> Seen:
        """The file as it is."""
        if not file.is_file():
            return cls(ABSENT)
        return cls(digest_of(file), file.stat().st_mtime_ns)


@dataclass(frozen=True, slots=True)
class LastBuild:
    """The last build in a directory that make itself ended.

    `key` is that of the recipe, "" while there is no image of all this.  `config` is the digest
    of the .config that `wanted` led to; `patched` are the files that were not the tree's own.
    """

    key: str = ""
    wanted: tuple[str, ...] = ()
    config: str = ""
    patched: Mapping[str, Seen] = field(default_factory=dict)

    @classmethod
    def read(cls, objects: Path) -> LastBuild | None:
        """What a directory remembers; None if nothing."""
        data = read_record(objects / FILE)
        if data is None:
            return None
        try:
            return cls(
                key=str(data["key"]),
                wanted=tuple(data["wanted"]),  # type: ignore[arg-type]
                config=str(data["config"]),
                patched={name: Seen(**seen) for name, seen in data["patched"].items()},  # type: ignore[attr-defined]
            )
        except (KeyError, TypeError, AttributeError):
            return None

    def write(self, objects: Path) -> None:
        """Let a directory remember it, from one moment to the next."""
        write_record(objects / FILE, asdict(self))
