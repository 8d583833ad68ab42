"""Make guests and hosts fail on purpose.

`provoke` lets the module fixtures/user_modules/hazard fail in a system call of a process of its
own, over any channel: a `vm.machine.Machine`, or `behind(ue)` in a case, unseen by the model.
Hosts get a disk that fills up, and programs that replace QEMU.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from conformance.client.user_events import UserEvents
from conformance.ops.calls import fd, path_in, sys_call
from host.deadline import Deadline
from kernels.build.out_of_tree_modules import ensure_module
from kernels.request import Request
from kernels.store.store import Store
from tests.shell_scripts import write_script

HAZARD = Path(__file__).parents[2] / "fixtures" / "user_modules" / "hazard"
#: The process whose calls provoke hazards, and that some of them never let return.
ACTOR = "hazard"
_IN = "/proc/uevt_hazard"
_AT_FDCWD = -100
_SLOT = 0
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class Channel(Protocol):
    """Performs calls in a guest: a machine, or the guest of the runner."""

    def call(self, actor: str, calls: Sequence[Sequence[Any]]) -> list[dict[str, Any]]: ...


def hazard_module() -> Path:
    """The module for 6.12, built in seconds the first time."""
    store = Store()
    return ensure_module(Request("6.12").entry(store), HAZARD, store)


def behind(ue: UserEvents) -> Channel:
    """The guest of a case, for calls that the model must not see."""
    channel: Channel = ue.lockstep._executor._channel  # type: ignore[attr-defined]
    return channel


def insert(channel: Channel, module: Path) -> None:
    """Load the module and start ACTOR, once per guest."""
    channel.call("", [["spawn", ACTOR]])
    place = "/tmp/uevt_hazard.ko"
    channel.call(ACTOR, [["spill", place, module.read_bytes().hex(), _FRESH]])
    *_, loaded = channel.call(
        ACTOR,
        [
            sys_call("openat", _AT_FDCWD, path_in(place), os.O_RDONLY, 0, slot=_SLOT),
            sys_call("finit_module", fd(_SLOT), path_in(""), 0),
        ],
    )
    assert loaded["errno"] == 0, f"the kernel does not load {module}: errno {loaded['errno']}"


def provoke(channel: Channel, hazard: str, about: str = "", **limits: Any) -> int:
    """Provoke a hazard of the module's table, with its argument.

    Returns errno.  Raises what the channel raises without an answer, as after most hazards;
    `limits` are passed to its `call`.
    """
    word = f"{hazard} {about}".strip().encode()
    (result,) = channel.call(ACTOR, [["spill", _IN, word.hex(), os.O_WRONLY]], **limits)
    return int(result["errno"])


def write(channel: Channel, path: str, text: str, **limits: Any) -> int:
    """Write a file of the guest, such as a sysctl; errno."""
    call = ["spill", path, text.encode().hex(), os.O_WRONLY]
    (result,) = channel.call(ACTOR, [call], **limits)
    return int(result["errno"])


def pause_machine(channel: Channel) -> None:
    """Pause the machine of a channel with the QEMU monitor."""
    machine: Any = getattr(channel, "_machine", channel)
    monitor = machine._power.monitor
    monitor._run(monitor._execute("stop"), Deadline(10, "stop"))


@contextlib.contextmanager
def small_disk(directory: Path, kib: int) -> Iterator[Path]:
    """Mount a file system of so many KiB.

    Raises PermissionError if this process may not mount.
    """
    directory.mkdir(parents=True, exist_ok=True)
    options = f"size={kib}k"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "uevt", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        raise PermissionError(mounted.stderr.strip())
    try:
        yield directory
    finally:
        # Lazily: a killed process may still have a file open there.
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(directory: Path) -> Path:
    """Fill a small file system; remove the returned file to free it."""
    free = os.statvfs(directory)
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        file.write(bytes(free.f_bavail * free.f_frsize))
    return ballast


def fake_qemu(directory: Path, script: str) -> Path:
    """Install a shell script as QEMU, in which "$QEMU" "$@" runs the real one.

    It is alone in its directory, for the front of PATH; version and help requests go to the real
    one.
    """
    real = shutil.which("qemu-system-x86_64")
    asked = 'case "$*" in *-version* | *help*) exec "$QEMU" "$@";; esac'
    return write_script(directory / "qemu-system-x86_64", f"QEMU={real}\n{asked}\n{script}")


def silent_kernel(image: Path) -> Path:
    """Write a bzImage that halts at once, without any output."""
    content = bytearray(3 * 512)
    # Documentation/arch/x86/boot.rst: setup_sects, boot_flag, jump, header, version, loadflags …
    content[0x1F1] = 1
    content[0x1FE:0x202] = b"\x55\xaa\xeb\x66"
    content[0x202:0x208] = b"HdrS\x06\x02"
    content[0x211] = 1
    # … initrd_addr_max; then cli, hlt, and the hlt again.
    content[0x22C:0x230] = (0x7FFFFFFF).to_bytes(4, "little")
    content[0x268:0x26C] = b"\xfa\xf4\xeb\xfd"
    image.write_bytes(content)
    return image
