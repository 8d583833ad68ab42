"""Modules of the user: built for the kernel, or checked against it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.runner.user_module import UserModule
from host.files import digest_of
from host.progress import Progress
from kernels.build.ko_file import ModuleFile, read_module
from kernels.build.out_of_tree_modules import ensure_module
from kernels.catalog.entries import KernelEntry
from kernels.errors import UserMistake
from kernels.request import label_of
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store

# Digits of the SHA-256 that distinguish builds of a module.
_DIGITS = 12


def built_modules(
    given: Sequence[str], entry: KernelEntry, built: BuiltKernel, store: Store, progress: Progress
) -> tuple[UserModule, ...]:
    """Modules for a kernel built here, in the order given: directories or .ko files.

    Raises KernelsError.
    """
    if given and "CONFIG_MODULES=y" not in entry.wanted:
        raise UserMistake(
            f"{entry.kernel_id} is built without CONFIG_MODULES, and --module needs it",
            "leave it on in --config",
        )
    files: list[Path] = []
    found = []
    for name in given:
        path = Path(name)
        if path.is_dir():
            files.append(ensure_module(entry, path, store, progress, after=files))
            found.append(read_module(files[-1]))
        else:
            found.append(_ready(path, built.release))
    return _named(found)


def id_with_modules(kernel_id: str, given: Sequence[str]) -> str:
    """The id of a kernel with the names of its modules, before the flavour.

    The name of a module in a directory is unknown before it is built: the directory's name stands
    for it.
    """
    name, tilde, rest = kernel_id.partition("~")
    paths = [Path(each) for each in given]
    called = [path.stem if path.suffix == ".ko" else path.resolve().name for path in paths]
    return name + label_of(called) + tilde + rest


def ready_modules(given: Sequence[str], release: str) -> tuple[UserModule, ...]:
    """Modules for a user's image: built already, for its release.

    Raises UserMistake.
    """
    for name in given:
        if Path(name).is_dir():
            raise UserMistake(
                f"{name} is a directory, and the tree of an image is not at hand to build it",
                "build it against the tree of that kernel, and give the .ko",
            )
    return _named([_ready(Path(name), release) for name in given])


def _ready(path: Path, release: str) -> ModuleFile:
    module = read_module(path)
    module.require(release)
    return module


def _named(found: Sequence[ModuleFile]) -> tuple[UserModule, ...]:
    names = [module.name for module in found]
    for name in names:
        if names.count(name) > 1:
            raise UserMistake(f"two modules are called {name}", "give each once")
    return tuple(
        UserModule(module.name, module.path, f"{module.name} {digest_of(module.path)[:_DIGITS]}")
        for module in found
    )
