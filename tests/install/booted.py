"""Boot a system of a kernel, busybox and one directory: nothing else is in it."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from virtme.cpiowriter import CpioWriter

_APPLETS = (
    *("basename", "cat", "cut", "dirname", "grep", "head", "ln", "mkdir", "mktemp", "mount"),
    *("poweroff", "realpath", "sed", "sh", "sort", "timeout", "tr", "uniq", "wc"),
)
_DIRECTORIES = ("bin", "dev", "proc", "sys", "tmp")
_INIT = """#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
ln -s /proc/self/fd/1 /dev/stdout
cd /lab
{commands}
poweroff -f
"""
_COMMAND = """echo =={name}
{{ {command}; echo "code=$?"; }} 2>/tmp/errors
echo ==errors of {name}
cat /tmp/errors
"""
# Of one command, on a busy host without KVM.
_SECONDS = 150.0
_OUTPUT = re.compile(r"^==(\w+)\n(.*?)^code=(\d+)\n==errors of \1\n(.*?)(?=^==|\Z)", re.S | re.M)


@dataclass(frozen=True, slots=True)
class Ended:
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    errors: str


def run_in_system(
    image: Path, lab: Path, commands: Mapping[str, str], work: Path
) -> dict[str, Ended]:
    """Run commands by name in /lab, a copy of `lab`, and return what they printed."""
    initrd = work / "initrd"
    init = _INIT.format(
        commands="".join(_COMMAND.format(name=n, command=c) for n, c in commands.items())
    )
    initrd.write_bytes(_archive(lab, init))
    console = subprocess.run(
        [
            *("qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "2"),
            *("-m", "1G", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"),
            *("-kernel", str(image), "-initrd", str(initrd)),
            *("-append", "console=ttyS0 quiet panic=-1"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=_SECONDS * len(commands),
    ).stdout.replace("\r\n", "\n")
    found = {name: Ended(int(code), *texts) for name, code, *texts in _split(console)}
    assert list(found) == list(commands), console
    return found


def _split(console: str) -> Iterable[tuple[str, str, str, str]]:
    for name, out, code, errors in _OUTPUT.findall(console):
        yield name, code, out, errors


def _archive(lab: Path, init: str) -> bytes:
    busybox = shutil.which("busybox")
    assert busybox is not None, "install busybox-static"
    out = io.BytesIO()
    writer = CpioWriter(out)
    for name in (*_DIRECTORIES, "lab"):
        writer.mkdir(name.encode(), 0o1777 if name == "tmp" else 0o755)
    # Until /dev is mounted.
    writer.mkchardev(b"dev/console", (5, 1), 0o600)
    writer.write_file(b"bin/busybox", Path(busybox).read_bytes(), 0o755)
    for name in _APPLETS:
        writer.symlink(b"busybox", f"bin/{name}".encode())
    for path in sorted(lab.rglob("*")):
        place = f"lab/{path.relative_to(lab)}".encode()
        if path.is_dir():
            writer.mkdir(place, 0o755)
        else:
            writer.write_file(place, path.read_bytes(), path.stat().st_mode & 0o777)
    writer.write_file(b"init", init.encode(), 0o755)
    writer.write_trailer()
    return out.getvalue()
