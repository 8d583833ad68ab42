"""A built kernel: its recipe, the product of its build, and its record in the store."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

KEPT = "kept"


class Recipe(Struct, frozen=True):
    """Everything that determines an image; its digest is the store's key."""

    package: str
    revision: str
    wanted: tuple[str, ...]
    patches: str
    compiler: str
    make: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """sha256 over all fields, in hex.  An empty `make` is left out: keys of existing stores
        stay valid.
        """
        fields = {name: value for name, value in asdict(self).items() if name != "make" or value}
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


class Product(Struct, frozen=True):
    """The files and facts of a finished build.

    `interface` identifies what modules see of it (kernels.build.module_abi), "" if unknown;
    `kept` are files in the directory of `config` that are stored with the image.
    """

    release: str
    image: Path
    config: Path
    interface: str = ""
    kept: tuple[Path, ...] = ()


class BuiltKernel(Struct, frozen=True):
    """A kernel in the store.

    `abi` is resolved ("6.12.117" where the catalog has "release"), `revision` is the exact version
    of the source, `wanted` are all wanted configuration lines, `source` describes the source for
    people, `interface` identifies what modules see of it.
    """

    kernel_id: str
    name: str
    abi: str
    release: str
    revision: str
    image: Path
    config: Path
    config_sha256: str
    wanted: tuple[str, ...]
    source: str
    interface: str = ""
    of: str | None = None

    @property
    def variant(self) -> bool:
        """Whether it is a kernel with patches of this suite; `of` names its base."""
        return self.of is not None

    @property
    def key(self) -> str:
        """The store's key."""
        return self.image.parent.name

    @property
    def kept(self) -> tuple[Path, ...]:
        """The files that were stored with it, below `kept_directory`."""
        return tuple(sorted(path for path in self.kept_directory.rglob("*") if path.is_file()))

    @property
    def kept_directory(self) -> Path:
        """The directory that stands for that of its objects."""
        return self.image.parent / KEPT
