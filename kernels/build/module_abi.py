"""What a module sees of a kernel: two that look alike to modules take the same module file.

A module is compiled with the kernel's configuration and headers and linked against its symbol
table.  A change inside of one of the kernel's own `.c` files is seen by none, where a patch makes
it.  In a tree of the user's every change is another revision, which is the id of all its content,
and its modules are built anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from host.files import digest_of
from kernels import kconfig
from kernels.build.objects import ObjectsDirectory
from kernels.store.built_kernel import Recipe
from kernels.store.last_build import Seen

# With these a module is bound to one build: to its types, its layout of structures.  Signatures
# are none of them: make signs what it installs, which is nothing of ours.
_BINDING = ("CONFIG_DEBUG_INFO_BTF_MODULES", "CONFIG_RANDSTRUCT")
# Programs of the host, which modules are made with.
_TOOLS = ("scripts/", "tools/")


def digest(objects: ObjectsDirectory, recipe: Recipe, patched: Mapping[str, Seen]) -> str:
    """sha256 over all that modules see of a finished build; its key where it fits no other."""
    text = objects.configuration.read_text(encoding="utf-8")
    options = kconfig.values(text)
    if options.get("CONFIG_MODULES") != "y" or any(options.get(name) == "y" for name in _BINDING):
        return recipe.key
    seen = [
        recipe.package,
        recipe.revision,
        recipe.compiler,
        objects.release,
        hashlib.sha256(text.encode()).hexdigest(),
        digest_of(objects.path / "vmlinux.symvers"),
        {
            file: seen.digest
            for file, seen in sorted(patched.items())
            if not _inside(file, objects.path)
        },
    ]
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()


def _inside(file: str, objects: Path) -> bool:
    """Whether a file is compiled into the kernel and into nothing else.

    What is included by others, or makes a header (kernel/bounds.c), has no object of its own.
    """
    return (
        file.endswith(".c")
        and not file.startswith(_TOOLS)
        and (objects / file).with_suffix(".o").is_file()
    )
