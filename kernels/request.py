"""What a user asks for: a kernel of the catalog, and what is to be added to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from kernels import config, series
from kernels.catalog import KernelEntry, load_catalog
from kernels.errors import BrokenFile, UserMistake
from kernels.progress import Progress, Step, silent
from kernels.table import closest

# Fragments that make another kernel for another purpose out of any.
FLAVOURS = config.FRAGMENTS / "flavours"

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Request:
    """A kernel of the catalog by name, with patches, configuration fragments and a flavour."""

    kernel: str
    patches: tuple[Path, ...] = ()
    configs: tuple[Path, ...] = ()
    flavour: str | None = None

    def entry(self, progress: Progress = silent) -> KernelEntry:
        """What is to be built; `progress` is told what was chosen from the files.

        Its kernel id is `name[@revision][+patch…][+config stem…][~flavour]`.  Raises
        UnknownKernel, BrokenFile, UserMistake for a flavour there is not.
        """
        base = load_catalog().find(self.kernel)
        given = [series.read(path) for path in self.patches]
        for note in (note for each in given for note in each.notes):
            progress(Step(note))
        fragments = [_fragment(path) for path in self.configs]
        if self.flavour is not None:
            fragments.append(_flavour(self.flavour))
        return replace(
            base,
            patches=(*base.patches, *(patch for each in given for patch in each.patches)),
            wanted=config.merge(("\n".join(base.wanted), *fragments)),
            label=self._label(),
        )

    def _label(self) -> str:
        names = [*map(series.stem, self.patches), *(path.stem for path in self.configs)]
        stems = [_NOT_IN_NAMES.sub("-", name) for name in names]
        flavour = f"~{self.flavour}" if self.flavour else ""
        return "".join(f"+{stem}" for stem in stems) + flavour


def flavours() -> tuple[str, ...]:
    """The names of all flavours."""
    return tuple(sorted(path.stem for path in FLAVOURS.glob("*.config")))


def _flavour(name: str) -> str:
    if name not in flavours():
        hint = closest(name, flavours())
        mend = f"did you mean {hint}?" if hint else f"choose from: {', '.join(flavours())}"
        raise UserMistake(f"unknown flavour {name!r}", mend)
    return (FLAVOURS / f"{name}.config").read_text(encoding="utf-8")


def _fragment(path: Path) -> str:
    """The text of a fragment, every line of which Kconfig would understand."""
    text = _text(path)
    if wrong := config.malformed(text):
        raise BrokenFile(path, f"{wrong[0]!r} is no configuration line", "write CONFIG_X=y")
    if not config.values(text):
        raise BrokenFile(path, "it sets no option", "write lines such as CONFIG_X=y")
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        why = error.strerror or str(error)
        raise BrokenFile(path, why, "name a file that you can read") from error
