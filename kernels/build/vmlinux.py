"""vmlinux of a built kernel, for debuggers: stored beside the image when it is first requested."""

from __future__ import annotations

from pathlib import Path

from host.files import write_atomically
from host.progress import Progress
from kernels.build.build import objects_of
from kernels.build.out_of_tree_modules import locked_objects, prepared
from kernels.catalog.entries import KernelEntry
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store

NAME = "vmlinux"


def vmlinux(entry: KernelEntry, built: BuiltKernel, store: Store, progress: Progress) -> Path:
    """The file of symbols, and of debugging information if the configuration has it.

    The objects have it as long as they are those of this kernel; otherwise they are built again.
    Raises any `KernelsError`.
    """
    file = built.image.parent / NAME
    if not file.is_file() and not _copied(entry, built, file, store):
        what = f"building {NAME} of {entry.kernel_id}"
        with locked_objects(entry, built, what, store, progress):
            _, objects = prepared(entry, built, store, progress)
            write_atomically(file, (objects.path / NAME).read_bytes())
    return file


def _copied(entry: KernelEntry, built: BuiltKernel, file: Path, store: Store) -> bool:
    """Copy it without a lock, unless another kernel is built there before or meanwhile."""
    objects = objects_of(entry, store.recipe(built), store)
    if not objects.holds(built.key):
        return False
    content = (objects.path / NAME).read_bytes()
    if not objects.holds(built.key):
        return False
    write_atomically(file, content)
    return True
