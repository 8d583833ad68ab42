"""A built kernel: what it is made from, what building it left, and what the store has of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what an image is; its digest is the store's key."""

    package: str
    revision: str
    wanted: tuple[str, ...]
    patches: str
    compiler: str
    make: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """sha256 over all fields, in hex; without `make`, as before there was such a thing."""
        fields = {name: value for name, value in asdict(self).items() if name != "make" or value}
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Product:
    """What a finished build left behind in the workshop.

    `interface` identifies what modules see of it, "" if nobody asked (kernels.build.module_abi);
    `kept` are files beside `config` or below, to be kept with the image.
    """

    release: str
    image: Path
    config: Path
    interface: str = ""
    kept: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """A kernel in the store.

    `abi` is resolved ("6.12.117" where the catalog says "release"), `revision` is the source
    package's exact version, `wanted` all wanted configuration lines, `source` says where the
    source came from, for people, `interface` identifies what modules see of it.
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
        """Whether this is a kernel that we changed: `of` names the one it was."""
        return self.of is not None

    @property
    def key(self) -> str:
        """The store's name for it."""
        return self.image.parent.name

    @property
    def kept(self) -> tuple[Path, ...]:
        """The files among its objects that were kept with it, below `keeping`."""
        return tuple(sorted(path for path in self.keeping.rglob("*") if path.is_file()))

    @property
    def keeping(self) -> Path:
        """In the place of the directory of its objects."""
        return self.image.parent / KEPT
