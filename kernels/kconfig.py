"""Configuration fragments: merge them, and check that every wanted option survived.

The syntax is Kconfig's (`CONFIG_X=y`, `# CONFIG_X is not set`), so scripts/kconfig/merge_config.sh
takes fragments as they are.  There, too, a later fragment wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

FRAGMENTS = Path(__file__).parent / "config"

# scripts/kconfig/confdata.c:conf_read_simple() accepts only these two forms.
_SET = re.compile(r"(CONFIG_\w+)=(.+)")
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")

NOT_SET = "n"


class LostOption(Struct, frozen=True):
    """A wanted option and its result; `became` is None if the kernel does not know it."""

    name: str
    wanted: str
    became: str | None

    def __str__(self) -> str:
        if self.became is None:
            became = "is absent"
        elif self.became == NOT_SET:
            became = "is not set"
        else:
            became = f"became {self.became}"
        return f"{self.name} (wanted {self.wanted}) {became}"


def values(text: str) -> dict[str, str]:
    """Option name to value of a configuration text, NOT_SET for `is not set`; the last one wins."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if match := _SET.fullmatch(line.strip()):
            found[match[1]] = match[2]
        elif match := _UNSET.fullmatch(line.strip()):
            found[match[1]] = NOT_SET
    return found


def malformed(text: str) -> tuple[str, ...]:
    """Lines that are neither an option, a comment nor blank, and that Kconfig would ignore."""
    return tuple(
        line
        for line in map(str.strip, text.splitlines())
        if line and not line.startswith("#") and not _SET.fullmatch(line)
    )


def fragment_path(name: str) -> Path:
    """The path of a fragment of `config/`, which need not exist."""
    return FRAGMENTS / f"{name}.config"


def merge(texts: Iterable[str]) -> tuple[str, ...]:
    """The wanted lines of some fragments, one per option, in Kconfig's form."""
    merged: dict[str, str] = {}
    for text in texts:
        merged.update(values(text))
    return tuple(
        f"# {name} is not set" if value == NOT_SET else f"{name}={value}"
        for name, value in merged.items()
    )


def changed(before: str, after: str) -> tuple[str, ...]:
    """The options in which two configuration texts differ, sorted."""
    old, new = values(before), values(after)
    return tuple(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))


def lost(wanted: Sequence[str], resulting: str) -> tuple[LostOption, ...]:
    """The wanted lines that a resulting .config (or a guest's /proc/config.gz) lacks.

    An option wanted off and not mentioned is off: Kconfig leaves out what is invisible.
    """
    became = values(resulting)
    return tuple(
        LostOption(name, value, became.get(name))
        for name, value in values("\n".join(wanted)).items()
        if became.get(name, NOT_SET if value == NOT_SET else None) != value
    )
