"""`uevt client` on 6.12: clients known to differ, each with its verdict."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from kernels.catalog.catalog import load_catalog
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store
from tests.enclosure import UEVT

CLIENTS = Path(__file__).parents[1] / "fixtures" / "clients"
CLIENT = (*UEVT, "client", "--kernel", "6.12")
SECONDS = 120
REFUSED = "refused as the ABI says: mistakes of the program"


def run(directory: Path, *words: str, kernel: str = "6.12") -> subprocess.CompletedProcess[str]:
    """The command with a working directory."""
    return subprocess.run(
        [*UEVT, "client", "--kernel", kernel, *words],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def compiled(name: str, directory: Path, *options: str) -> None:
    """Compile one of the clients."""
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", *options)
    subprocess.run(
        ["gcc", *flags, "-o", str(directory / name), str(CLIENTS / f"{name}.c")], check=True
    )


@pytest.mark.parametrize(
    ("name", "options", "code", "verdict"),
    [
        (
            "bit_31",
            ["--listener", "perf"],
            0,
            "6 calls, all as the ABI allows; 1 event, 3 records read back byte for byte",
        ),
        ("passed", [], 4, f"7 calls, 1 {REFUSED}; 2 events, 2 records read back byte for byte"),
        ("deletes", ["--listener", "none"], 4, f"8 calls, 2 {REFUSED}; 1 event, 0 records"),
        ("page_per_word", [], 4, f"61 calls, 8 {REFUSED}; 20 events, 20 records read back byte"),
    ],
)
def test_a_client_has_its_verdict(
    built_kernel: BuiltKernel,
    tmp_path: Path,
    name: str,
    options: list[str],
    code: int,
    verdict: str,
) -> None:
    compiled(name, tmp_path)
    done = run(tmp_path, *options, "--", "env", f"./{name}")
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"uevt: {verdict}"), done
    assert (done.returncode, done.stderr) == (code, "")
    assert "not judged" not in done.stdout


def test_a_static_client_on_a_kernel_of_another_interface(
    built_kernel: BuiltKernel, tmp_path: Path
) -> None:
    """The kernel reads a pointer that is user memory in one paging mode only."""
    if Store().lookup(load_catalog().find("6.1")) is None:
        pytest.skip("the build store has no Linux 6.1: build that kernel")
    compiled("spellings", tmp_path, "-static")
    done = run(tmp_path, "--", "env", "./spellings", kernel="6.1")
    assert "a structure of 28 bytes belongs to the interface" in " ".join(done.stdout.split())
    assert f"uevt: 9 calls, 8 {REFUSED}; 0 events, 0 records" in done.stdout
    assert "not judged" not in done.stdout
    assert done.returncode == 4


def test_threads_forks_signals_and_execve_are_followed(
    built_kernel: BuiltKernel, tmp_path: Path
) -> None:
    compiled("tasks", tmp_path)
    done = run(tmp_path, "--", "env", "./tasks")
    assert "the program ended with exit code 17" in done.stdout
    assert f"70 calls, 3 {REFUSED}; 5 events, 32 records read back byte for byte" in done.stdout
    assert "not judged" not in done.stdout
    assert done.returncode == 4


def test_an_ending_process_has_released_its_events(
    built_kernel: BuiltKernel, tmp_path: Path
) -> None:
    compiled("ends", tmp_path)
    done = run(tmp_path, "--listener", "none", "--", "env", "./ends")
    assert f"{REFUSED}; 2 events" in done.stdout
    assert "not judged" not in done.stdout
    assert done.returncode == 4


def test_a_shell_redirects_its_output(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    """dup2(2) replaces standard output by the data file, and restores it."""
    line = "exec 3<>/sys/kernel/tracing/user_events_data; printf 12345678 >&3; exec 3>&-"
    done = run(tmp_path, "--", line)
    assert f"calls, 1 {REFUSED}; 0 events" in done.stdout
    assert "not judged" not in done.stdout
    assert done.returncode == 4


def test_input_output_and_recording(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    done = subprocess.run(
        [*CLIENT, "--recording", "r", "--", "cat; echo error >&2; kill -9 $$"],
        cwd=tmp_path,
        input="input\n",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "input",
        "the program ended with exit code 137",
        "uevt: the program made no user_events call",
    ]
    assert done.stderr == "error\n"
    assert done.returncode == 3
    assert (tmp_path / "r").read_text().endswith("done\n")


def test_a_deadline_ends_a_program_and_judges_what_it_did(
    built_kernel: BuiltKernel, tmp_path: Path
) -> None:
    compiled("bit_31", tmp_path)
    done = run(tmp_path, "--deadline", "10", "--", "./bit_31; sleep 1000")
    assert "the program was ended after 10 s (--deadline)" in done.stdout
    assert "6 calls, all as the ABI allows" in done.stdout
    assert done.returncode == 0


def test_ctrl_c_leaves_nothing_behind(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*CLIENT, "--", "echo started; sleep 1000"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == "started\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(SECONDS) == 130
    assert not [file for file in Path("/proc").glob("[0-9]*/stat") if _session(file) == process.pid]


def _session(file: Path) -> int:
    try:
        return int(file.read_text().rpartition(")")[2].split()[3])
    except OSError:
        return 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kernel", "model", "--", "true"], "the model runs no programs"),
        (["--kernel", "6.12"], "COMMAND"),
        (["--kernel", "6.12", "--listener", "strace", "--", "true"], "invalid choice 'strace'"),
        (["--kernel", "6.12", "--recording", "/nowhere/r", "--", "true"], "--recording /nowhere/r"),
    ],
)
def test_a_mistaken_command_line_is_refused(words: list[str], message: str) -> None:
    done = subprocess.run(
        [*UEVT, "client", *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 2
    assert message in done.stderr
