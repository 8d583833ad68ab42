"""Which kernels can load the same module file: a digest over all that a module is built from.

A module depends on the kernel's configuration, headers and symbol table.  A change inside a `.c`
file of the kernel, by a patch or in a user's tree, affects none of them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping

from host.files import digest_of
from kernels import kconfig
from kernels.build.objects import ObjectsDirectory
from kernels.store.built_kernel import Recipe
from kernels.store.last_build import Seen

# Options that bind a module to one build: its types, or its structure layout.  Signatures do not:
# make signs modules only when it installs them.
_BINDING = ("CONFIG_DEBUG_INFO_BTF_MODULES", "CONFIG_RANDSTRUCT")
# Host programs that modules are built with.
_TOOLS = ("scripts/", "tools/")


def digest(
    objects: ObjectsDirectory, recipe: Recipe, patched: Mapping[str, Seen], source: str
) -> str:
    """sha256 over all that modules see of a build; the recipe's key if no other build can share
    modules.

    `source` stands for the unpatched tree, without the files that are `inside` the kernel.
    """
    text = objects.configuration.read_text(encoding="utf-8")
    options = kconfig.values(text)
    if options.get("CONFIG_MODULES") != "y" or any(options.get(name) == "y" for name in _BINDING):
        return recipe.key
    seen = [
        recipe.package,
        source,
        recipe.compiler,
        objects.release,
        hashlib.sha256(text.encode()).hexdigest(),
        digest_of(objects.path / "vmlinux.symvers"),
        {
            file: seen.digest
            for file, seen in sorted(patched.items())
            if not inside(file, str(objects.path))
        },
    ]
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()


def inside(file: str, objects: str) -> bool:
    """Whether modules depend on a file through the kernel's symbols alone.

    A file that others include, or that generates a header (kernel/bounds.c), has no object.
    """
    # Plain strings: a tree has 35,000 of them.
    return (
        file.endswith(".c")
        and not file.startswith(_TOOLS)
        and os.path.isfile(f"{objects}/{file[:-1]}o")  # noqa: PTH113
    )
