"""What a user asks for: a kernel of the catalog or a tree, and what is to be added to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from host.progress import Progress, Step, silent
from kernels import kconfig
from kernels.catalog.catalog import load_catalog
from kernels.catalog.entries import KernelEntry
from kernels.catalog.flavours import Flavour, flavour
from kernels.errors import BrokenFile, LostOptions
from kernels.patches import series
from kernels.store.store import Store
from kernels.trees.user_tree import entry_of

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
# Characters of what is added to a name.
_LONGEST = 100
_DIGITS = 8


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
        """What is to be built; `progress` is told what was chosen from the files.

        A tree is read for it, and what is known of it kept in the store.

        Its kernel id is `name[@revision][+patch…][+config stem…][~flavour]`.  Raises
        UnknownKernel, BrokenFile, UserMistake for a flavour there is not, and for a tree what
        `trees.entry_of` raises.
        """
        base = self._base(store or Store(), progress)
        given = [series.read(path) for path in self.patches]
        for note in (note for each in given for note in each.notes):
            progress(Step(note))
        fragments = [_fragment(path) for path in self.configs]
        chosen = flavour(self.flavour) if self.flavour is not None else None
        flavoured = [chosen.fragment] if chosen else []
        entry = replace(
            base,
            patches=(*base.patches, *(patch for each in given for patch in each.patches)),
            # The user's word is the last one.
            wanted=kconfig.merge(("\n".join(base.wanted), *flavoured, *fragments)),
            label=self._label(),
        )
        return _flavoured(entry, chosen) if chosen else entry

    def accused(self, error: LostOptions) -> LostOptions | BrokenFile:
        """Whose fault lost options are: without fragments of the user's they are all there."""
        if not self.configs:
            return error
        asked = {path: kconfig.values(_fragment(path)) for path in self.configs}
        named = {path: [each for each in error.lost if each.name in asked[path]] for path in asked}
        guilty = {path: lost for path, lost in named.items() if lost}
        if guilty:
            path, lost = next(iter(guilty.items()))
            listed = "; ".join(map(str, lost))
            hint = "add what they depend on, or leave them out: make olddefconfig drops them"
            return BrokenFile(path, f"this kernel cannot have what it asks for: {listed}", hint)
        path = self.configs[-1]
        listed = "; ".join(map(str, error.lost))
        others = f" (or {', '.join(map(str, self.configs[:-1]))})" if self.configs[1:] else ""
        why = f"it takes away what guests and cases need{others}: {listed}"
        return BrokenFile(path, why, "leave on what these options depend on")

    def _base(self, store: Store, progress: Progress) -> KernelEntry:
        if self.tree is not None:
            return entry_of(self.tree, self.ref, store, progress)
        return load_catalog().find(self.kernel)

    def _label(self) -> str:
        names = [*map(series.stem, self.patches), *(path.stem for path in self.configs)]
        return label_of(names) + (f"~{self.flavour}" if self.flavour else "")


def label_of(names: Sequence[str]) -> str:
    """What is behind a kernel's name when something of these names was added to it.

    Kernel ids are names of files: of many or long ones it is the first, how many more there are,
    and a digest that tells them from others.
    """
    label = "".join(f"+{_NOT_IN_NAMES.sub('-', name)}" for name in names)
    if len(label) <= _LONGEST:
        return label
    said = "\0".join(names).encode(errors="surrogateescape")
    digest = hashlib.sha256(said).hexdigest()[:_DIGITS]
    first = _NOT_IN_NAMES.sub("-", names[0])[: _LONGEST // 2]
    more = f"{len(names) - 1}-more-" if names[1:] else ""
    return f"+{first}+{more}{digest}"


def _flavoured(entry: KernelEntry, chosen: Flavour) -> KernelEntry:
    """With what a flavour says beside its fragment."""
    space = max(entry.needs.objects_mib, chosen.objects_mib)
    needs = replace(entry.needs, objects_mib=space)
    return replace(entry, make=chosen.make, keep=chosen.keep, needs=needs)


def _fragment(path: Path) -> str:
    """The text of a fragment, every line of which Kconfig would understand."""
    text = _text(path)
    if not text.isascii() and any("\udc80" <= each <= "\udcff" for each in text):
        raise BrokenFile(path, "it is not UTF-8", "save it as UTF-8")
    if wrong := kconfig.malformed(text):
        raise BrokenFile(path, f"{wrong[0]!r} is no configuration line", "write CONFIG_X=y")
    values = kconfig.values(text)
    if not values:
        raise BrokenFile(path, "it sets no option", "write lines such as CONFIG_X=y")
    for name, value in values.items():
        if value == "m":
            why = f"{name}=m: the modules of a kernel are not built, only its image"
            raise BrokenFile(path, why, f"write {name}=y")
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        why = error.strerror or str(error)
        raise BrokenFile(path, why, "name a file that you can read") from error
