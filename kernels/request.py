"""A kernel that a user requests: one of the catalog or a tree, with additions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from host.files import read_given
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
# Characters of a label.
_LONGEST = 100
_DIGITS = 8


class Request(Struct, frozen=True):
    """A kernel, with patches, configuration fragments and a flavour.

    It is a kernel of the catalog by name, or a directory of the user: the working tree, or the
    commit `ref` of its repository.
    """

    kernel: str = ""
    patches: tuple[Path, ...] = ()
    configs: tuple[Path, ...] = ()
    flavour: str | None = None
    tree: Path | None = None
    ref: str | None = None

    def entry(self, store: Store | None = None, progress: Progress = silent) -> KernelEntry:
        """The entry to build; the choice among files is reported to `progress`.

        A tree is read, and its record kept in the store.
        The kernel id is `name[@revision][+patch…][+config stem…][~flavour]`.  Raises UnknownKernel,
        BrokenFile, UserMistake for an unknown flavour, and what `user_tree.entry_of` raises.
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
            # The user's fragments win.
            wanted=kconfig.merge(("\n".join(base.wanted), *flavoured, *fragments)),
            label=self._label(),
        )
        return _flavoured(entry, chosen) if chosen else entry

    def blame(self, error: LostOptions) -> LostOptions | BrokenFile:
        """Blame lost options on the user's fragment that asks for them or disables what they
        need.
        """
        if not self.configs:
            return error
        asked = {path: kconfig.values(_fragment(path)) for path in self.configs}
        named = {path: [each for each in error.lost if each.name in asked[path]] for path in asked}
        guilty = {path: lost for path, lost in named.items() if lost}
        if guilty:
            path, lost = next(iter(guilty.items()))
            listed = "; ".join(map(str, lost))
            hint = "add what they depend on, or leave them out: make olddefconfig drops them"
            return BrokenFile(path, f"this kernel drops options that it sets: {listed}", hint)
        path = self.configs[-1]
        listed = "; ".join(map(str, error.lost))
        if all(each.wanted == kconfig.NOT_SET for each in error.lost):
            why = f"it selects what guests are built without: {listed}"
            return BrokenFile(path, why, "set these options in it as well")
        others = f" (or {', '.join(map(str, self.configs[:-1]))})" if self.configs[1:] else ""
        why = f"it disables what guests and cases need{others}: {listed}"
        return BrokenFile(path, why, "leave on what these options depend on")

    def _base(self, store: Store, progress: Progress) -> KernelEntry:
        if self.tree is not None:
            return entry_of(self.tree, self.ref, store, progress)
        return load_catalog().find(self.kernel)

    def _label(self) -> str:
        names = [*map(series.stem, self.patches), *(path.stem for path in self.configs)]
        return label_of(names) + (f"~{self.flavour}" if self.flavour else "")


def label_of(names: Sequence[str]) -> str:
    """The part of a kernel id that names the additions.

    Kernel ids are file names: of many or long names, it is the first, the number of others, and a
    digest.
    """
    label = "".join(f"+{_NOT_IN_NAMES.sub('-', name)}" for name in names)
    if len(label) <= _LONGEST:
        return label
    joined = "\0".join(names).encode(errors="surrogateescape")
    digest = hashlib.sha256(joined).hexdigest()[:_DIGITS]
    first = _NOT_IN_NAMES.sub("-", names[0])[: _LONGEST // 2]
    more = f"{len(names) - 1}-more-" if names[1:] else ""
    return f"+{first}+{more}{digest}"


def _flavoured(entry: KernelEntry, chosen: Flavour) -> KernelEntry:
    """Add what a flavour says besides its fragment."""
    space = max(entry.needs.objects_mib, chosen.objects_mib)
    needs = replace(entry.needs, objects_mib=space)
    return replace(entry, make=chosen.make, keep=chosen.keep, needs=needs)


def _fragment(path: Path) -> str:
    """The text of a fragment; every line is valid for Kconfig."""
    try:
        text = read_given(path).decode(errors="surrogateescape").replace("\r\n", "\n")
    except OSError as error:
        why = error.strerror or str(error)
        raise BrokenFile(path, why, "name a readable file") from error
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
