"""The command of virtme-ng is cached until one of its inputs changes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.shell_scripts import lines_of, write_script
from vm.qemu import virtme_ng
from vm.qemu.virtme_ng import virtme_command

ANSWER = "/qemu -m 512M -append 'a b'"
COMMAND = ("/qemu", (("-m", "512M"), ("-append", "a b")))


class Host:
    """A host with a fake virtme-run that counts its runs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cache = directory / "cache"
        self.kernel, self.qemu = directory / "bzImage", directory / "qemu"
        self.package = directory / "virtme" / "run.py"
        self.boot_id, self.nr_open = directory / "boot_id", directory / "nr_open"
        self.package.parent.mkdir()
        for file in (self.kernel, self.qemu, self.package, self.boot_id, self.nr_open):
            file.write_text(file.name)
        self.program = directory / "virtme-run"
        write_script(self.program, f'echo "$*" >> {self.directory}/runs\necho "{ANSWER}"')

    @property
    def runs(self) -> int:
        """How often virtme-run was started."""
        return len(lines_of(self.directory / "runs"))

    def command(self, memory: int = 512) -> object:
        """The command as seen by a fresh process."""
        virtme_command.cache_clear()
        return virtme_command(self.kernel, memory, 1, str(self.qemu), self.cache)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path)
    host.cache.mkdir()
    monkeypatch.setattr(virtme_ng, "_BOOT_ID", host.boot_id)
    monkeypatch.setattr(virtme_ng, "_NR_OPEN", host.nr_open)
    monkeypatch.setattr(virtme_ng, "_installed", lambda: str(host.program))
    monkeypatch.setattr(virtme_ng, "_package", lambda program: [host.package])
    return host


def test_command_is_cached(host: Host) -> None:
    assert [host.command() for _ in range(3)] == [COMMAND] * 3
    assert host.runs == 1
    host.command(1024)
    assert host.runs == 2
    host.command()
    assert host.runs == 2


@pytest.mark.parametrize(
    "what", ["kernel", "qemu", "package", "boot_id", "nr_open", "program", "TERM"]
)
def test_changed_input_invalidates_the_cache(
    host: Host, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    host.command()
    if what == "TERM":
        monkeypatch.setenv(what, "another")
    else:
        file: Path = getattr(host, what)
        file.write_text(file.read_text() + "\n")
    host.command()
    assert host.runs == 2


@pytest.mark.parametrize(
    "damage", ["", "[]", "{}", "[" * 100_000, '{"KEY": []}', '{"KEY": [1]}', '{"KEY": "words"}']
)
def test_damaged_entry_is_ignored(host: Host, damage: str) -> None:
    host.command()
    file = host.cache / "virtme.json"
    (key,) = json.loads(file.read_text())
    file.write_text(damage.replace("KEY", key))
    assert host.command() == COMMAND
    assert host.runs == 2


def test_cache_writable_by_others_is_ignored(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cached command would be executed."""
    host.command()
    file = host.cache / "virtme.json"
    file.chmod(0o664)
    host.command()
    assert host.runs == 2
    # The file was replaced.
    host.command()
    assert host.runs == 2
    fstat = os.fstat

    def of_another(descriptor: int) -> os.stat_result:
        status = list(fstat(descriptor))
        status[4] += 1
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", of_another)
    host.command()
    assert host.runs == 3


def test_cache_is_bounded(host: Host) -> None:
    for memory in range(70):
        host.command(memory)
    assert len(json.loads((host.cache / "virtme.json").read_text())) == 64
    host.command(69)
    assert host.runs == 70


def test_unwritable_cache(host: Host) -> None:
    host.cache.rmdir()
    host.cache.write_text("a file")
    assert [host.command() for _ in range(2)] == [COMMAND] * 2
    assert host.runs == 2


def test_foreign_virtme_ng_is_not_cached(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files it consists of are unknown."""
    monkeypatch.undo()
    monkeypatch.setattr(virtme_ng, "_installed", lambda: None)
    monkeypatch.setenv("PATH", str(host.directory), prepend=os.pathsep)
    assert [host.command() for _ in range(2)] == [COMMAND] * 2
    assert host.runs == 2
