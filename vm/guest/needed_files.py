"""List the files that the guest's half of the agent needs, as seen by Python.

Run on the host as `python -I -S needed_files.py DIRECTORY`, where DIRECTORY holds the package vm.
It imports what the guest imports, and prints all imported and mapped files.
"""

from __future__ import annotations

import sys


def files() -> list[str]:
    """Interpreter, libraries and modules of this process: absolute paths."""
    found = {sys.executable}
    for module in list(sys.modules.values()):
        for name in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
            if name:
                found.add(name)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        # address, permissions, offset, device, inode, and the file if there is one
        words = (line.rstrip("\n").split(None, 5) for line in maps)
        found |= {fields[5] for fields in words if len(fields) > 5 and fields[5][0] == "/"}
    return sorted(found)


def import_all() -> None:
    """Import what the guest's half imports, also what it imports on demand."""
    import importlib

    on_demand = ("io_uring", "task_driver", "races", "shell", "programs", "kernel_facts")
    for name in ("init", "supervisor", *on_demand):
        module = importlib.import_module(f"vm.guest.{name}")
    # It imports json and others when it is called.
    module.describe()


def main(directory: str) -> None:
    """Print the files as JSON."""
    sys.path.insert(0, directory)
    import json

    import_all()
    sys.stdout.write(json.dumps(files()))


if __name__ == "__main__":
    main(sys.argv[1])
