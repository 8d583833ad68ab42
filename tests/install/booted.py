"""Boot a system of a kernel, busybox and one directory: nothing else is in it."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from virtme.cpiowriter import CpioWriter

_APPLETS = (
    *("basename", "cat", "cut", "dirname", "grep", "head", "ln", "mkdir", "mktemp", "mount"),
    *("poweroff", "realpath", "rmdir", "sed", "sh", "sleep", "sort", "timeout", "tr", "umount"),
    *("tail", "uniq", "wc"),
)
_DIRECTORIES = ("bin", "dev", "proc", "run", "sys", "tmp")
_INIT = """#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
ln -s /proc/self/fd/1 /dev/stdout
{before}
cd /lab
{commands}
poweroff -f
"""
_ARGUMENTS = "quiet panic=-1 oops=panic no_timer_check rcupdate.rcu_expedited=1"
_COMMAND = """echo =={name}
{{ {command}; echo "code=$?"; }} 2>/tmp/errors
echo ==errors of {name}
cat /tmp/errors
{after}
"""
# Of one command, on a busy host without KVM.
_SECONDS = 150.0
_OUTPUT = re.compile(r"^==(\w+)\n(.*?)^code=(\d+)\n==errors of \1\n(.*?)(?=^==|\Z)", re.S | re.M)


class Ended(Struct, frozen=True):
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    errors: str


def run_in_system(
    image: Path, lab: Path, commands: Mapping[str, str], work: Path
) -> dict[str, Ended]:
    """Run commands by name in /lab, a copy of `lab`, and return what they printed."""
    found, console = try_in_system(image, lab, commands, work)
    assert list(found) == list(commands), console
    return found


def try_in_system(
    image: Path,
    lab: Path,
    commands: Mapping[str, str],
    work: Path,
    *,
    before: str = "",
    after: str = "",
    cpus: int = 2,
) -> tuple[dict[str, Ended], str]:
    """The commands that ended, and the console; the kernel may crash.

    ``before`` runs before the first, ``after`` after each.
    """
    initrd = work / "initrd"
    texts = (_COMMAND.format(name=n, command=c, after=after) for n, c in commands.items())
    initrd.write_bytes(_archive(lab, _INIT.format(before=before, commands="".join(texts))))
    with subprocess.Popen(
        [
            *("qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-smp", str(cpus)),
            *("-m", "1G", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"),
            *("-kernel", str(image), "-initrd", str(initrd)),
            *("-append", f"console=ttyS0 {_ARGUMENTS}"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as qemu:
        end = threading.Timer(_SECONDS * len(commands), qemu.kill)
        end.start()
        console = qemu.communicate()[0].replace("\r\n", "\n")
        end.cancel()
    found = _OUTPUT.findall(console)
    return {name: Ended(int(code), out, errors) for name, out, code, errors in found}, console


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
