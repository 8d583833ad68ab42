"""What a user asks for: a kernel of the catalog or a tree, and what is to be added to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from kernels import config
from kernels.catalog import KernelEntry, load_catalog
from kernels.errors import UserMistake
from kernels.progress import Progress, silent
from kernels.store import Store
from kernels.table import closest
from kernels.trees import entry_of

# Fragments that make another kernel for another purpose out of any.
FLAVOURS = config.FRAGMENTS / "flavours"

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


class BrokenFile(UserMistake):
    """A file given on the command line that cannot be used."""

    def __init__(self, path: Path, why: str, mend: str) -> None:
        super().__init__(f"{path}: {why}", mend)


@dataclass(frozen=True, slots=True)
class Request:
    """A kernel, with patches, configuration fragments and a flavour.

    It is one of the catalog by name, or the tree in a directory of the user's: as it is, or the
    commit `ref` of its repository.
    """

    kernel: str = ""
    patches: tuple[Path, ...] = ()
    configs: tuple[Path, ...] = ()
    flavour: str | None = None
    tree: Path | None = None
    ref: str | None = None

    def entry(self, store: Store | None = None, progress: Progress = silent) -> KernelEntry:
        """What is to be built.  A tree is read for it, and what is known of it kept in the store.

        Its kernel id is `name[@revision][+patch…][+config stem…][~flavour]`.  Raises
        UnknownKernel, BrokenFile, UserMistake for a flavour there is not, and for a tree what
        `trees.entry_of` raises.
        """
        base = self._base(store or Store(), progress)
        patches = [(path.stem, _text(path)) for path in self.patches]
        fragments = [_fragment(path) for path in self.configs]
        if self.flavour is not None:
            fragments.append(_flavour(self.flavour))
        return replace(
            base,
            patches=(*base.patches, *patches),
            wanted=config.merge(("\n".join(base.wanted), *fragments)),
            label=self._label(),
        )

    def _base(self, store: Store, progress: Progress) -> KernelEntry:
        if self.tree is not None:
            return entry_of(self.tree, self.ref, store, progress)
        return load_catalog().find(self.kernel)

    def _label(self) -> str:
        stems = [_NOT_IN_NAMES.sub("-", path.stem) for path in (*self.patches, *self.configs)]
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
