"""QEMU dies with its parent, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes import gone, wait_for
from vm.qemu.process import Qemu

#: A parent process that starts a "QEMU", which writes its pid and waits.
HOST = """
import signal, sys, time
from pathlib import Path
from vm.qemu.process import Qemu
# A shell that runs the tests in the background would have Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
qemu = Qemu(["/bin/sh", "-c", "echo $$ > pid.new; mv pid.new pid; exec sleep 600"], Path("log"))
time.sleep(60)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_qemu_dies_with_the_host_process(tmp_path: Path, end: signal.Signals) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", HOST], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    ) as host:
        wait_for((tmp_path / "pid").exists, "start of the program")
        pid = int((tmp_path / "pid").read_text())
        host.send_signal(end)
    wait_for(lambda: gone(pid), "end of the program")


@pytest.fixture
def sleeping(tmp_path: Path) -> Iterator[Qemu]:
    """A program that sleeps until it is killed."""
    qemu = Qemu(["/bin/sh", "-c", "sleep 600"], tmp_path / "log")
    yield qemu
    qemu.kill()


def test_kill_is_complete_and_idempotent(tmp_path: Path) -> None:
    qemu = Qemu(["/bin/sh", "-c", "sleep 600 & echo $!; wait"], tmp_path / "log")
    wait_for(qemu.output, "start of the program")
    qemu.kill()
    qemu.kill()
    assert not qemu.alive()
    child = int(qemu.output())
    wait_for(lambda: gone(child), "end of the group")


def test_status_and_output(tmp_path: Path) -> None:
    qemu = Qemu(["/bin/sh", "-c", "echo bad luck >&2; exit 3"], tmp_path / "log")
    assert qemu.wait(30) == 3
    assert qemu.output() == "bad luck\n"
    assert (tmp_path / "log").read_text().startswith("/bin/sh -c 'echo bad luck")


def test_waiting_has_an_end(sleeping: Qemu) -> None:
    began = time.monotonic()
    assert sleeping.wait(0.05) is None
    sleeping.kill()
    assert time.monotonic() - began < 10


def test_cpu_time_of_an_ending_process(sleeping: Qemu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads disappear during the scan, and no file stays open."""

    def no_such_process(path: Path) -> str:
        raise ProcessLookupError(path)

    assert sleeping.cpu_time().threads
    monkeypatch.setattr("vm.qemu.process.Path.read_text", no_such_process)
    assert not sleeping.cpu_time().threads


def forked(check: Callable[[], bool]) -> bool:
    """Evaluate a check in a forked process."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize(
    ("text", "status"), [("exit 3", 3), ("kill -9 $$", -9), ("kill -SEGV $$", -11)]
)
def test_forked_process_sees_the_exit_status(tmp_path: Path, text: str, status: int) -> None:
    """Reaping is left to the starting process."""
    go = tmp_path / "go"
    waiting = f"until [ -e {go} ]; do sleep 0.02; done; {text}"
    qemu = Qemu(["/bin/sh", "-c", waiting], tmp_path / "log")

    def check() -> bool:
        lived = qemu.alive() and qemu.wait(0.05) is None
        go.touch()
        return lived and qemu.wait(30.0) == status and not qemu.alive()

    assert forked(check)
    assert qemu.wait(30.0) == status


def test_forked_process_can_kill(sleeping: Qemu) -> None:
    def check() -> bool:
        sleeping.kill()
        sleeping.kill()
        return sleeping.wait(0) == -signal.SIGKILL

    assert forked(check)
    assert sleeping.wait(0) == -signal.SIGKILL


def test_reaped_process_counts_as_killed(sleeping: Qemu) -> None:
    sleeping.kill()
    sleeping._process.returncode = None
    assert forked(lambda: not sleeping.alive() and sleeping.wait(0) == -signal.SIGKILL)
    sleeping._process.returncode = -signal.SIGKILL
