"""The installed suite: in an empty environment, and in a system with busybox alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from conformance.cli.install import kselftest
from conformance.cli.install.interpreter import FILES
from conformance.cli.install.kselftest import install, write_tarball
from conformance.session.shards import seconds_of
from host.deadline import Deadline
from kernels.store.built_kernel import BuiltKernel
from tests.conftest import tools_testing
from tests.install.booted import Ended, run_in_system
from tests.shell_scripts import write_script

CASE = "write.returns_all_bytes.u8"
# A case that deviates if a bug that 6.12 has must be fixed.
DEVIATING = "eprobe.signed_byte"
_FIXED = "--abi 6.12,eprobe-sign=fixed --fail-on detail"
# Without blanks in an argument, for the runners of kernels.
_ARGUMENTS = f"{_FIXED} --tier full --frozen 0.1.0 -k ({CASE})or({DEVIATING})"
_RUNNER = (
    "(mkdir /tmp/d; cd {directory}; "
    f"TMPDIR=/tmp/d UEVT_OUT=/tmp/out KSELFTEST_RUN_SH_ARGS='{_ARGUMENTS}' "
    "sh ./run_kselftest.sh -c uevt)"
)
_AS_NOBODY = 'import os; os.setuid(65534); os.execv("uevt/run.sh", ["uevt/run.sh"])'
# A suite that restores the system when timeout(1) ends it.
_SLOW_END = """\
trap 'sleep 0.5; echo restored; exit 130' TERM
mkdir "$UEVT_CACHE"
while :; do sleep 0.1; done"""
# Of xz: quick.
PRESET = 0
# The kernel whose runner runs the suite in a guest; see test_runners.py.
RELEASE = "7.3"


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tarball") / "uevt.tar.xz"
    write_tarball(file, PRESET)
    return file


@pytest.fixture(scope="module")
def lab(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a lab unpacks the tarball: a path with a space."""
    directory = tmp_path_factory.mktemp("unpacked") / "a lab"
    directory.mkdir()
    # Python 3.11.2, that of Debian 12, unpacks without a filter only.
    subprocess.run(["tar", "-xf", tarball, "-C", directory], check=True, timeout=60)
    return directory


def ended(*words: str | Path, cwd: str = "/") -> subprocess.CompletedProcess[str]:
    """A program in an empty environment."""
    return subprocess.run(
        words, capture_output=True, text=True, timeout=120, cwd=cwd, env={"PATH": os.defpath}
    )


def python(lab: Path, code: str, *paths: str) -> subprocess.CompletedProcess[str]:
    """A program of the tarball's Python, with further search paths."""
    added = [str(lab / "uevt" / path) for path in paths]
    program = f"import sys; sys.path += {added}; {code}"
    words = ("-I", "-S", "-X", "utf8", "-c", program)
    return ended(lab / "uevt/python/bin/python3", *words)


def test_same_bytes_again(tarball: Path, tmp_path: Path) -> None:
    write_tarball(tmp_path / "again.tar.xz", PRESET)
    assert (tmp_path / "again.tar.xz").read_bytes() == tarball.read_bytes()


def test_starts_anywhere(lab: Path) -> None:
    version = ended(lab / "uevt/run.sh", "--version")
    assert version.stdout.startswith("uevt ")
    assert version.stderr == ""
    assert "--exit-style" in ended(lab / "uevt/run.sh", "--help").stdout
    relative = ended("sh", "run.sh", "--version", cwd=str(lab / "uevt"))
    assert relative.stdout == version.stdout


def test_uses_nothing_of_the_host(lab: Path) -> None:
    shown = "print(*sys.path, open('/proc/self/maps').read(), sep='\\n')"
    program = f"import ctypes, msgspec, pytest; {shown}"
    done = python(lab, program, "suite/packages")
    assert done.stderr == ""
    lines = [line for line in done.stdout.splitlines() if "/" in line]
    files = [line if line.startswith("/") else line.split(None, 5)[5] for line in lines]
    assert len(files) > 10
    assert [each for each in files if not each.startswith(str(lab))] == []


def test_estimates_as_a_checkout(lab: Path) -> None:
    ids = ["status.write", CASE]
    program = f"from conformance.session.shards import seconds_of; print(seconds_of({ids}))"
    done = python(lab, program, "suite", "suite/packages")
    assert done.stdout == f"{seconds_of(ids)}\n", done.stderr


def test_leaves_the_tree_as_it_is(lab: Path) -> None:
    before = sorted(lab.rglob("*"))
    ended(lab / "uevt/run.sh", "--help")
    assert sorted(lab.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="run.sh needs root")
def test_waits_for_the_end_of_an_interrupted_run(tmp_path: Path) -> None:
    """The next test of the runner must not meet a system that is being restored."""
    shutil.copy(FILES / "run.sh", tmp_path)
    write_script(tmp_path / "python/bin/python3", _SLOW_END)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    given = {"PATH": os.defpath, "TMPDIR": str(scratch), "UEVT_OUT": str(tmp_path / "out")}
    with subprocess.Popen(
        ["sh", tmp_path / "run.sh"], env=given, stdout=subprocess.PIPE, start_new_session=True
    ) as runs:
        deadline = Deadline(60, "a run")
        while not [*scratch.glob("*/cache")]:
            deadline.pause()
        os.killpg(runs.pid, signal.SIGTERM)
        assert runs.wait(60) == 130
        assert runs.stdout is not None
        assert runs.stdout.read() == b"restored\n"
    assert [*scratch.iterdir()] == []


def test_added_to_other_collections(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copied(directory: Path) -> None:
        shutil.copytree(lab / "uevt", directory)

    monkeypatch.setattr(kselftest, "write_collection", copied)
    (tmp_path / "kselftest-list.txt").write_text("ftrace:ftracetest-ktap\n")
    (tmp_path / "run_kselftest.sh").write_text("theirs\n")
    install(tmp_path)
    install(tmp_path)
    listed = (tmp_path / "kselftest-list.txt").read_text()
    assert listed == "ftrace:ftracetest-ktap\nuevt:run.sh\n"
    assert (tmp_path / "run_kselftest.sh").read_text() == "theirs\n"
    names = {each.name for each in tmp_path.iterdir()}
    assert names == {"kselftest-list.txt", "run_kselftest.sh", "uevt"}


def test_runner_lists_and_refuses(lab: Path) -> None:
    runner = lab / "run_kselftest.sh"
    assert ended(runner, "--list").stdout == "uevt:run.sh\n"
    wrong = ended(runner, "-c", "timers")
    assert (wrong.returncode, wrong.stderr) == (1, "No such collection 'timers'\n")


@pytest.fixture(scope="module")
def booted(
    built_kernel: BuiltKernel, lab: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Ended]:
    commands = {
        "runner": _RUNNER.format(directory="."),
        "left": "echo /tmp/out/* /tmp/out/repro/* /tmp/d/*",
        "user": f"uevt/python/bin/python3 -I -S -c '{_AS_NOBODY}'",
    }
    with suppress(pytest.skip.Exception):
        tree = tools_testing(RELEASE) / "selftests"
        theirs = lab / "theirs"
        shutil.copytree(tree / "kselftest", theirs / "kselftest")
        for file in (tree / "run_kselftest.sh", lab / "kselftest-list.txt"):
            shutil.copy(file, theirs)
        commands["runner"] = f"ln -s ../uevt theirs; {_RUNNER.format(directory='theirs')}"
    # The last: the event stays.
    commands["occupied"] = (
        "mount -t tracefs tracefs /sys/kernel/tracing; "
        "echo 'u:somebody u32 a' >> /sys/kernel/tracing/dynamic_events; "
        "./run_kselftest.sh -c uevt"
    )
    return run_in_system(built_kernel.image, lab, commands, tmp_path_factory.mktemp("boot"))


def test_judges_the_kernel_it_runs_on(booted: dict[str, Ended]) -> None:
    """By the runner of a kernel, or ours."""
    lines = booted["runner"].out.splitlines()
    begin = lines.index("# KTAP version 1")
    assert lines[begin + 1] == "# 1..3"
    assert {f"# ok 1 {CASE}", f"# not ok 2 {DEVIATING}", "# ok 3 uevt.run"} <= {*lines}
    assert "not ok 1 selftests: uevt: run.sh # exit=1" in lines


def test_a_deviating_case_leaves_every_file(booted: dict[str, Ended]) -> None:
    """And nothing beside the results."""
    files = {each.removeprefix("/tmp/out/") for each in booted["left"].out.split()}
    assert files >= {"results.json", "junit.xml", "results.ktap", f"repro/{DEVIATING}.c"}
    assert "/tmp/d/*" in files
    assert "Traceback" not in booted["runner"].out
    elsewhere = "copy the results, and run uevt report DIR --html FILE elsewhere\n"
    assert elsewhere in booted["runner"].out


def test_kunit_reads_the_output(booted: dict[str, Ended], tmp_path: Path) -> None:
    kunit = tools_testing(RELEASE) / "kunit/kunit.py"
    file = tmp_path / "output"
    file.write_text(booted["runner"].out)
    # -B: the store compares mtimes of source trees.
    parsed = ended(sys.executable, "-B", kunit, "parse", file)
    assert "Ran 1 tests: failed: 1" in parsed.stdout
    assert "errors:" not in parsed.stdout


def test_a_user_skips(booted: dict[str, Ended]) -> None:
    assert booted["user"].code == 4
    assert booted["user"].out == "KTAP version 1\n1..0 # SKIP needs root\n"


def test_a_system_in_use_skips(booted: dict[str, Ended]) -> None:
    """Our own runner says so, with the tools of busybox."""
    lines = booted["occupied"].out.splitlines()
    assert "# KTAP version 1" in lines
    assert "# 1..0 # SKIP 1 user event of other programs: somebody" in lines
    assert "--even-so" in booted["occupied"].out
    assert lines[-1] == "ok 1 selftests: uevt: run.sh # SKIP"


def test_a_kernel_without_user_events_skips(
    kernel_without_user_events: BuiltKernel, lab: Path, tmp_path: Path
) -> None:
    # The second is skipped before anything is known of user_events.
    commands = {"direct": f"uevt/run.sh -k '{CASE} or trigger.target_is_busy'"}
    direct = run_in_system(kernel_without_user_events.image, lab, commands, tmp_path)["direct"]
    assert direct.code == 4, direct
    assert all(line.startswith(("KTAP", "1..", "ok ", "#")) for line in direct.out.splitlines())
    assert "Traceback" not in direct.errors
