"""Choose the accelerator: boot a kernel under KVM, and fall back to emulation (TCG).

An accessible /dev/kvm proves nothing: QEMU may still abort on an MSR or hang.
"""

from __future__ import annotations

import hashlib
import os
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from host.arch import CONSOLE
from host.files import read_record, write_record
from host.temporary_directories import scratch
from vm.errors import AcceleratorTrouble
from vm.qemu.process import Qemu


class Verdict(StrEnum):
    """Outcome of a trial of KVM."""

    WORKS = "works"
    ABORTS = "aborts"
    HANGS = "hangs"
    FORBIDDEN = "forbidden"
    ABSENT = "absent"
    NOT_TRIED = "not tried"


class Accelerator(Struct, frozen=True):
    """QEMU's -machine and -cpu values.

    `slowness` multiplies every deadline; `verdict` and `why` describe the trial of KVM.
    """

    name: str
    machine: str
    cpu: str
    slowness: float
    verdict: Verdict
    why: str


#: q35, because microvm has no PM timer and can hang at TSC calibration on a busy host.  erms=off,
#: because TCG emulates `rep stosb` byte by byte; without ERMS the kernel clears pages by words.
TCG = Accelerator(
    "tcg", "q35,accel=tcg", "max,erms=off", 5.0, Verdict.NOT_TRIED, "KVM was not tried"
)
_KVM = Accelerator("kvm", "q35,accel=kvm", "host", 1.0, Verdict.WORKS, "")

KVM_DEVICE = Path("/dev/kvm")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TRIAL_SECONDS = 10.0
#: Maximum number of cached verdicts.
_MAX_CACHED = 64
#: How the boot of a kernel without a root file system ends if KVM works.
_BOOTED = re.compile(r"Kernel panic - not syncing: (?:VFS|No working init)")
_NO_PERMISSION = re.compile(r"[Pp]ermission denied|Operation not permitted")


def choose_accelerator(
    kernel: Path,
    *,
    qemu: str,
    cache: Path,
    device: Path = KVM_DEVICE,
    seconds: float = _TRIAL_SECONDS,
) -> Accelerator:
    """KVM if a kernel boots under it within `seconds`, else TCG with the reason.

    `qemu` is the path of the program.  The directory `cache` keeps the verdict until the host
    reboots or QEMU or the kernel changes.  Raises AcceleratorTrouble if the trial cannot be run.
    """
    if not device.exists():
        return _decided(Verdict.ABSENT, f"{device} does not exist")
    if not os.access(device, os.R_OK | os.W_OK):
        return _decided(Verdict.FORBIDDEN, f"{device} may not be opened for reading and writing")
    store = cache / "accelerator.json"
    try:
        key = _key(kernel, Path(qemu), device)
        if (recalled := _recall(store, key)) is not None:
            return recalled
        if _writable(cache):
            decided = _try(kernel, qemu, cache / "accelerator.log", seconds)
            known = list((read_record(store) or {}).items())[1 - _MAX_CACHED :]
            write_record(store, dict(known) | {key: [decided.verdict, decided.why]})
        else:
            with scratch() as work:
                decided = _try(kernel, qemu, work / "accelerator.log", seconds)
    except OSError as error:
        raise AcceleratorTrouble(
            f"KVM could not be tried: {error}", hint=f"check {kernel}, {qemu} and {cache}"
        ) from None
    return decided


def _writable(cache: Path) -> bool:
    """Whether the verdict can be cached."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(cache, os.W_OK | os.X_OK)


def _try(kernel: Path, qemu: str, log: Path, seconds: float) -> Accelerator:
    # fmt: off
    argv = [
        qemu, "-machine", _KVM.machine, "-cpu", _KVM.cpu, "-m", "256M",
        "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
        "-kernel", str(kernel), "-append", f"console={CONSOLE} panic=-1",
    ]
    # fmt: on
    trial = Qemu(argv, log)
    try:
        returncode = trial.wait(seconds)
        output = trial.output()
    finally:
        trial.kill()
    if _BOOTED.search(output):
        return _decided(Verdict.WORKS, "a kernel booted under KVM")
    if returncode is None:
        return _decided(Verdict.HANGS, f"KVM: no boot within {seconds:g} s")
    last = (output.strip().splitlines() or ["no message"])[-1]
    if _NO_PERMISSION.search(output):
        return _decided(Verdict.FORBIDDEN, f"KVM: {last}")
    return _decided(Verdict.ABORTS, f"KVM: QEMU ended with {returncode}: {last}")


def _decided(verdict: Verdict, why: str) -> Accelerator:
    return replace(_KVM if verdict is Verdict.WORKS else TCG, verdict=verdict, why=why)


def _key(kernel: Path, qemu: Path, device: Path) -> str:
    """A digest of all that a verdict depends on."""
    parts = [_BOOT_ID.read_text().strip(), str(device)]
    for file in (qemu, kernel):
        status = file.stat()
        parts.append(f"{file.resolve()} {status.st_mtime_ns} {status.st_size}")
    return hashlib.sha256(os.fsencode("\n".join(parts))).hexdigest()


def _recall(store: Path, key: str) -> Accelerator | None:
    known: Any = (read_record(store) or {}).get(key)
    try:
        verdict, why = known
        return _decided(Verdict(verdict), str(why))
    except (TypeError, ValueError):
        return None
