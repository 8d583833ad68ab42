"""`uevt shell` on 6.12: commands, a terminal, what the guest sees of the host, and the end."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from kernels.store.built_kernel import BuiltKernel
from tests.conftest import Uevt
from tests.enclosure import UEVT
from tests.processes import naming

SHELL = (*UEVT, "shell", "--kernel", "6.12")
SECONDS = 60
MEGABYTES = 8 << 20

Shell = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def shell(built_kernel: BuiltKernel, tmp_path: Path) -> Shell:
    """Run a command in a guest whose /host is ``tmp_path``."""

    def run(*words: str, options: tuple[str, ...] = (), given: bytes = b"") -> object:
        return subprocess.run(
            [*SHELL, *options, "--", *words],
            cwd=tmp_path,
            input=given,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )

    return run  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("words", "code", "output", "errors"),
    [
        (["echo out; echo err >&2; exit 5"], 5, b"out\n", b"err\n"),
        (["printf", "%s\\n", "two words"], 0, b"two words\n", b""),
        (["kill -9 $$"], 137, b"", b""),
        (["no_such", "x"], 127, b"", b"uevt: no_such: No such file or directory\n"),
        (["/etc/passwd", "x"], 126, b"", b"uevt: /etc/passwd: Permission denied\n"),
        (
            ["yes | head -1; nproc; pwd; test -e /sys/kernel/tracing/user_events_data"],
            0,
            b"y\n1\n/host\n",
            b"",
        ),
        (["ls /root /home/* 2>/dev/null; mount -o remount,rw /usr; touch /usr/x"], 1, None, None),
    ],
)
def test_a_command_has_its_output_and_exit_code(
    shell: Shell, words: list[str], code: int, output: bytes | None, errors: bytes | None
) -> None:
    done = shell(*words)
    assert done.returncode == code, done
    assert output in (None, done.stdout)
    assert errors in (None, done.stderr)


def test_a_working_directory_that_is_not_utf_8(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    work = tmp_path / os.fsdecode(b"\xff")
    work.mkdir()
    (work / "file").write_text("text")
    done = subprocess.run(
        [*SHELL, "--", "cat", "file"], cwd=work, capture_output=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"text", b"")


def test_input_output_and_files_pass_whole(shell: Shell, tmp_path: Path) -> None:
    content = os.urandom(MEGABYTES)
    done = shell("tee file | cat; cat mine", given=content)
    assert (done.returncode, done.stdout[: len(content)] == content) == (1, True)
    assert (tmp_path / "file").read_bytes() == content


def test_a_compiled_program_runs(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text("int main(void) { return 42; }\n")
    for name, options in (("dynamic", ()), ("static", ("-static",))):
        program = ["gcc", *options, "-o", str(tmp_path / name), str(tmp_path / "program.c")]
        subprocess.run(program, check=True, timeout=SECONDS)
    assert shell("./dynamic; first=$?; ./static; exit $((first + $?))").returncode == 84


def test_two_processors(shell: Shell) -> None:
    assert shell("nproc", options=("--cpus", "2")).stdout == b"2\n"


def test_deadline(shell: Shell, tmp_path: Path) -> None:
    began = time.monotonic()
    shell("true")
    # Enough for an echo, also on a starved host.
    seconds = 2 + math.ceil(time.monotonic() - began)
    done = shell("echo begun; sleep 1000", options=("--deadline", str(seconds)))
    assert (done.returncode, done.stdout) == (124, b"begun\n")
    assert f"did not end within {seconds} s".encode() in done.stderr
    assert naming(str(tmp_path)) == []
    assert shell("yes", options=("--deadline", "3")).returncode == 124


def test_crash_and_warning_of_the_kernel_are_reported(shell: Shell, tmp_path: Path) -> None:
    done = shell("exec 3>log; echo before >&3; echo c > /proc/sysrq-trigger")
    assert done.returncode == 1
    # The file was open.
    assert (tmp_path / "log").read_text() == "before\n"
    assert b"uevt: the guest crashed: " in done.stderr


def test_interrupt_leaves_nothing(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    command = [*SHELL, "--", "echo begun; sleep 1000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        begun, alive = process.stdout.readline(), naming(str(tmp_path))
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(SECONDS) == 130
        finally:
            process.kill()
    assert (begun, alive != []) == (b"begun\n", True)
    assert naming(str(tmp_path)) == []


def test_terminal(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    began = time.monotonic()
    child = pexpect.spawn(
        SHELL[0],
        list(SHELL[1:]),
        cwd=str(tmp_path),
        encoding="utf-8",
        dimensions=(30, 90),
        timeout=SECONDS,
    )
    child.expect(r"6\.12 /host # ")
    assert time.monotonic() - began < SECONDS
    for line, answer in (
        ("echo $((6 * 7)) $(stty size) $(tty)", "42 30 90 /dev/pts/0"),
        ("touch made; echo $?", "0"),
        ("sleep 1000", None),
    ):
        child.sendline(line)
        if answer is None:
            time.sleep(1)
            child.sendintr()
        else:
            child.expect(f"{answer}\r")
        child.expect("# ")
    child.setwinsize(40, 100)
    child.sendline("sleep 0.5; stty size")
    child.expect("40 100\r")
    child.expect("# ")
    child.sendline("(exit 3)")
    child.expect("# ")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 3
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("shell", "no kernel named; add --kernel 6.12, --tree DIR or --image FILE\n"),
        ("client true", "no kernel named; add --kernel 6.12, --tree DIR, --image FILE or --here\n"),
        ("shell --kernel model", "the model has no shell"),
        ("shell --kernel 6.12 --image x", "exclude each other"),
        ("shell --kernel 6.21", "unknown kernel"),
    ],
)
def test_mistakes(uevt: Uevt, words: str, message: str) -> None:
    assert message in uevt(*words.split(), code=2).err
