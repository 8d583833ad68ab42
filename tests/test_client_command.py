"""`uevt client` on 6.12: clients known to differ, each with its verdict."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from conformance.cli.client import keep
from kernels.catalog.catalog import load_catalog
from kernels.errors import HostTrouble
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store
from tests.conftest import Uevt
from tests.enclosure import UEVT

CLIENTS = Path(__file__).parents[1] / "fixtures" / "clients"
CLIENT = (*UEVT, "client", "--kernel")
SECONDS = 120
WHOLE = "read back byte for byte"
ALLOWED = f"6 calls, all as the ABI allows; 1 event, 3 records {WHOLE}"
REFUSED = "refused as the ABI says: mistakes of the program"
KNOWN_BUGS = "refused because of known bugs of the kernel"
# dup2(2) replaces standard output by the data file, and restores it.
REDIRECTED = "exec 3<>/sys/kernel/tracing/user_events_data; printf 12345678 >&3; exec 3>&-"


@pytest.mark.parametrize(
    ("client", "options", "command", "code", "texts"),
    [
        ("bit_31", "--listener perf", "", 0, [f"uevt: {ALLOWED}"]),
        ("passed", "", "", 4, [f"uevt: 7 calls, 1 {REFUSED}; 2 events, 2 records {WHOLE}"]),
        ("deletes", "--listener none", "", 4, [f"uevt: 9 calls, 3 {REFUSED}; 1 event, 0 records"]),
        (
            "page_per_word",
            "",
            "",
            4,
            [f"uevt: 61 calls, 8 {REFUSED}; 20 events, 20 records {WHOLE}"],
        ),
        # Threads, forks, signals and execve(2).
        (
            "tasks",
            "",
            "",
            4,
            [
                "ended with exit code 17",
                f"uevt: 70 calls, 3 {KNOWN_BUGS}; 5 events, 32 records {WHOLE}",
                "process (bug registration-of-a-thread)",
            ],
        ),
        # An ending process has released its events.
        ("ends", "--listener none", "", 4, [f"{REFUSED}; 2 events"]),
        ("", "", REDIRECTED, 4, [f"calls, 1 {REFUSED}; 0 events"]),
        (
            "bit_31",
            "--deadline 10",
            "./bit_31; sleep 1000",
            0,
            ["was ended after 10 s (--deadline)", ALLOWED],
        ),
        # What was recorded before is judged.
        (
            "bit_31",
            "",
            "./bit_31; echo c > /proc/sysrq-trigger",
            1,
            ["the guest crashed", ALLOWED],
        ),
    ],
)
def test_a_client_has_its_verdict(
    built_kernel: BuiltKernel,
    tmp_path: Path,
    client: str,
    options: str,
    command: str,
    code: int,
    texts: list[str],
) -> None:
    if client:
        compiled(client, tmp_path)
    words = [command] if command else ["env", f"./{client}"]
    done = run(tmp_path, "6.12", *options.split(), "--", *words)
    assert [text for text in texts if text not in done.stdout] == [], done
    assert done.returncode == code
    # The shell prints the error of a refused write.
    assert (done.stderr == "") is (command != REDIRECTED)
    assert "not judged" not in done.stdout


def test_a_static_client_on_a_kernel_of_another_interface(
    built_kernel: BuiltKernel, tmp_path: Path
) -> None:
    """The kernel reads a pointer that is user memory in one paging mode only."""
    if Store().lookup(load_catalog().find("6.1")) is None:
        pytest.skip("the build store has no Linux 6.1: build that kernel")
    compiled("spellings", tmp_path, "-static")
    done = run(tmp_path, "6.1", "--", "env", "./spellings")
    assert "a structure of 28 bytes belongs to the interface" in " ".join(done.stdout.split())
    assert f"uevt: 9 calls, 8 {REFUSED}; 0 events, 0 records" in done.stdout
    assert "not judged" not in done.stdout
    assert done.returncode == 4


@pytest.mark.parametrize("client", ["killed", "racing", "untraced", "filtered"])
def test_the_kernel_is_not_blamed(built_kernel: BuiltKernel, tmp_path: Path, client: str) -> None:
    compiled(client, tmp_path)
    done = run(tmp_path, "6.12", "--", "env", f"./{client}")
    assert "calls, all as the ABI allows" in done.stdout, done
    assert done.returncode == 0


def test_input_output_and_recording(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    command = "cat; echo error >&2; kill -9 $$"
    done = run(tmp_path, "6.12", "--recording", "r", "--", command, given="input\n")
    assert done.stdout.splitlines() == [
        "input",
        "the program ended with exit code 137",
        "uevt: the program made no user_events call",
    ]
    assert done.stderr == "error\n"
    assert done.returncode == 3
    assert (tmp_path / "r").read_text().endswith("done\n")


def test_a_recording_that_does_not_fit_is_named() -> None:
    with pytest.raises(HostTrouble, match="--recording /dev/full: No space left"):
        keep(b"recording", Path("/dev/full"))


def run(
    directory: Path, kernel: str, *words: str, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """The command with a working directory."""
    return subprocess.run(
        [*CLIENT, kernel, *words],
        cwd=directory,
        input=given,
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


def test_ctrl_c_leaves_nothing_behind(built_kernel: BuiltKernel, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*CLIENT, "6.12", "--", "echo started; sleep 1000"],
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
        (["model", "--", "true"], "the model runs no programs"),
        (["6.12"], "COMMAND"),
        (["6.12", "--listener", "strace", "--", "true"], "invalid choice 'strace'"),
        (["6.12", "--recording", "/nowhere/r", "--", "true"], "--recording /nowhere/r"),
    ],
)
def test_a_mistaken_command_line_is_refused(uevt: Uevt, words: list[str], message: str) -> None:
    assert message in uevt("client", "--kernel", *words, code=2).err
