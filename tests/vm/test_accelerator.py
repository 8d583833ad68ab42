"""KVM is used only after a successful boot: fake QEMUs work, abort, hang or lack permission."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from host.files import read_record
from tests.shell_scripts import lines_of, write_script
from vm.errors import AcceleratorTrouble
from vm.qemu import accelerator
from vm.qemu.accelerator import TCG, Accelerator, Verdict, choose_accelerator

WORKS = 'echo "[ 0.4] Kernel panic - not syncing: VFS: Unable to mount root fs"; exit 0'
ABORTS = 'echo "qemu: error: failed to set MSR 0x10a to 0x0" >&2; kill -ABRT $$'
HANGS = "echo SeaBIOS; exec sleep 600"
FORBIDDEN = 'echo "Could not access KVM kernel module: Permission denied" >&2; exit 1'


class Host:
    """A host with a fake QEMU that counts its starts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kernel = root / "bzImage"
        self.kernel.write_bytes(b"kernel")
        self.device = root / "kvm"
        self.device.touch()
        self.qemu = root / "qemu"

    def install(self, behaviour: str) -> None:
        write_script(self.qemu, f'echo "$@" >> {self.root}/starts\n{behaviour}')

    def starts(self) -> int:
        return len(lines_of(self.root / "starts"))

    def choose(self, seconds: float = 20.0) -> Accelerator:
        return choose_accelerator(
            self.kernel, qemu=str(self.qemu), cache=self.root / "cache",
            device=self.device, seconds=seconds,
        )  # fmt: skip


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_kvm_is_used_if_a_kernel_boots(host: Host) -> None:
    host.install(WORKS)
    found = host.choose()
    assert (found.name, found.verdict, found.slowness) == ("kvm", Verdict.WORKS, 1.0)
    assert "accel=kvm" in (host.root / "starts").read_text()


@pytest.mark.parametrize(
    ("behaviour", "seconds", "verdict", "why"),
    [
        (ABORTS, 20.0, Verdict.ABORTS, "failed to set MSR 0x10a"),
        (HANGS, 0.5, Verdict.HANGS, "no boot within 0.5 s"),
        (FORBIDDEN, 20.0, Verdict.FORBIDDEN, "Permission denied"),
        ("exit 0", 20.0, Verdict.ABORTS, "ended with 0: no message"),
    ],
)
def test_failed_trial_falls_back_to_emulation(
    host: Host, behaviour: str, seconds: float, verdict: Verdict, why: str
) -> None:
    host.install(behaviour)
    found = host.choose(seconds)
    assert (found.name, found.machine, found.cpu) == ("tcg", TCG.machine, TCG.cpu)
    assert found.verdict is verdict
    assert why in found.why


def test_hanging_trial_leaves_no_process(host: Host) -> None:
    host.install(f"echo $$ > {host.root}/pid; {HANGS}")
    host.choose(1.0)
    pid = int((host.root / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_trial_without_the_device(host: Host) -> None:
    host.install(WORKS)
    host.device.unlink()
    assert host.choose().verdict is Verdict.ABSENT
    assert host.starts() == 0


def test_inaccessible_device_is_forbidden(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.install(WORKS)
    # Root may open every file, whatever its mode.
    monkeypatch.setattr(os, "access", lambda path, mode: path != host.device)
    assert host.choose().verdict is Verdict.FORBIDDEN


def test_verdict_is_cached_until_kernel_or_qemu_changes(host: Host) -> None:
    host.install(WORKS)
    assert host.choose() == host.choose()
    assert host.starts() == 1
    host.kernel.write_bytes(b"another kernel")
    host.choose()
    assert host.starts() == 2
    host.install(ABORTS)
    assert host.choose().verdict is Verdict.ABORTS
    assert host.starts() == 3


def test_only_the_verdict_is_cached(host: Host) -> None:
    """The options of TCG come from this version, not from the cache."""
    host.install(ABORTS)
    decided = host.choose()
    assert TCG.cpu not in (host.root / "cache" / "accelerator.json").read_text()
    assert host.choose() == decided
    assert host.starts() == 1


def test_oldest_verdicts_are_dropped(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "_MAX_CACHED", 2)
    host.install(WORKS)
    for content in (b"first", b"second", b"third"):
        host.kernel.write_bytes(content)
        host.choose()
    assert len(read_record(host.root / "cache" / "accelerator.json") or {}) == 2
    host.choose()
    assert host.starts() == 3


@pytest.mark.parametrize("damage", ["", "[]", '{"x": 1}', "{"])
def test_damaged_cache_is_ignored(host: Host, damage: str) -> None:
    host.install(WORKS)
    host.choose()
    (host.root / "cache" / "accelerator.json").write_text(damage)
    assert host.choose().verdict is Verdict.WORKS
    assert host.starts() == 2


def test_missing_kernel_is_host_trouble(host: Host) -> None:
    host.install(WORKS)
    host.kernel.unlink()
    with pytest.raises(AcceleratorTrouble, match="bzImage"):
        host.choose()


def test_read_only_cache(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """KVM is tried on every call, and nothing is left behind."""
    host.install(WORKS)
    cache = host.root / "cache"
    cache.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: path != cache)
    assert [host.choose().verdict for _ in range(2)] == [Verdict.WORKS] * 2
    assert host.starts() == 2
    assert list(cache.iterdir()) == []
