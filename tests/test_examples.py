"""The examples for CI systems: scripts run, and uevt accepts their arguments."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from conformance.cli.main import build_parser
from tests.kernels.user_trees import git

CI = Path(__file__).resolve().parent.parent / "examples" / "ci"
SCRIPTS = ("autopkgtest/user-events", "git-bisect.sh", "kselftest.sh", "tmt/user-events.sh")
SECONDS = 120


class FakeUevt:
    """A stub of `uevt` that records its arguments; `body` is shell code that ends it."""

    def __init__(self, directory: Path, body: str = "exit 4") -> None:
        self.path = directory / "uevt"
        self._calls = directory / "calls"
        self.path.write_text(f'#!/bin/sh\necho "$@" >>"{self._calls}"\n{body}\n')
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each call."""
        return [shlex.split(line) for line in self._calls.read_text().splitlines()]

    def called_by(self, script: str, *words: str, cwd: Path = CI, **environment: str) -> int:
        """The exit code of a script that calls it, by default for an image."""
        own = {"UEVT": str(self.path), "IMAGE": "/nowhere/bzImage", **environment}
        command = [str(CI / script), *words]
        return subprocess.run(
            command, cwd=cwd, env={**os.environ, **own}, check=False, timeout=SECONDS
        ).returncode


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_posix_sh(script: str) -> None:
    assert (CI / script).stat().st_mode & 0o111
    subprocess.run(["sh", "-n", CI / script], check=True, timeout=SECONDS)


@pytest.mark.parametrize("script", ["autopkgtest/user-events", "kselftest.sh"])
def test_script_passes_arguments_and_exit_code(tmp_path: Path, script: str) -> None:
    uevt = FakeUevt(tmp_path)
    assert uevt.called_by(script, "-k", "status.", AUTOPKGTEST_ARTIFACTS=str(tmp_path)) == 4
    (call,) = uevt.calls
    options = build_parser().parse_args(call)
    assert (options.image, options.keyword) == ("/nowhere/bzImage", "status.")
    assert options.exit_style == {"kselftest.sh": "kselftest"}.get(script, "autopkgtest")


def test_autopkgtest_judges_the_kernel_of_the_testbed(tmp_path: Path) -> None:
    """Its image in QEMU would need its modules."""
    uevt = FakeUevt(tmp_path)
    script, place = "autopkgtest/user-events", str(tmp_path)
    uevt.called_by(script, "-k", "status.", AUTOPKGTEST_ARTIFACTS=place, IMAGE="")
    options = build_parser().parse_args(uevt.calls[0])
    assert (options.here, options.image, options.keyword) == (True, None, "status.")


@pytest.mark.parametrize(
    ("kernel", "option"), [("--kernel 6.12 -k status.", "kernel"), ("", "here")]
)
def test_tmt_gets_results_and_exit_code(tmp_path: Path, kernel: str, option: str) -> None:
    uevt = FakeUevt(tmp_path, '[ "$1" = export ]')
    script, data = "tmt/user-events.sh", str(tmp_path)
    assert uevt.called_by(script, TMT_TEST_DATA=data, UEVT_KERNEL=kernel) == 1
    judged, exported = (build_parser(call).parse_args(call) for call in uevt.calls)
    assert getattr(judged, option)
    assert judged.out == str(tmp_path / "uevt") == str(exported.run[0])
    assert (exported.format, exported.files) == ("tmt", "uevt")
    # tmt reads this file.
    assert exported.out == tmp_path / "results.yaml"


def test_tmt_gets_an_error_without_results(tmp_path: Path) -> None:
    uevt = FakeUevt(tmp_path, "exit 3")
    assert uevt.called_by("tmt/user-events.sh", TMT_TEST_DATA=str(tmp_path)) == 2


def test_lava_pattern_parses_the_stream() -> None:
    (written,) = re.findall(r'pattern: "(.*)"', (CI / "lava.yaml").read_text())
    pattern = re.compile(written.replace("\\\\", "\\"), re.MULTILINE)
    stream = (CI.parents[1] / "fixtures" / "report" / "stream.ktap").read_text()
    results = {found["test_case_id"]: found["result"] for found in pattern.finditer(stream)}
    assert len(results) == 12
    assert (results["write.storm"], results["uevt.run"]) == ("not ok", "ok")
    assert (results["layouts.compat"], results["format.array_length"]) == ("SKIP", "ok")
    # An incomplete line does not match.
    assert not pattern.search("ok 7 write.a")


# A tree whose image is a copy of its file `state`.
MAKEFILE = """\
olddefconfig:
bzImage:
\tgrep -qv broken state
\tmkdir -p arch/x86/boot && cp state arch/x86/boot/bzImage
"""
STATES = ("good 0", "good 1", "broken 2", "none 3", "bad 4", "bad 5")
JUDGE = "case $(cat arch/x86/boot/bzImage) in good*) exit 0;; none*) exit 125;; *) exit 1;; esac"


def test_git_bisect_finds_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits that do not compile or lack user_events are skipped."""
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q")
    (tree / "Makefile").write_text(MAKEFILE)
    for state in STATES:
        (tree / "state").write_text(f"{state}\n")
        git(tree, "add", "state", "Makefile")
        git(tree, "commit", "-qm", state)
    uevt = FakeUevt(tmp_path, JUDGE)
    monkeypatch.setenv("UEVT", str(uevt.path))
    git(tree, "bisect", "start", "HEAD", "HEAD~5")
    bisect = subprocess.run(
        ["git", "bisect", "run", CI / "git-bisect.sh"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    # Two skipped commits lie between the last good and the first bad one.
    assert "We cannot bisect more" in bisect.stdout + bisect.stderr
    suspects = git(tree, "bisect", "visualize", "--format=%s").split("\n")
    assert {"bad 4", "none 3", "broken 2"} >= set(suspects) - {""} >= {"bad 4"}
    for call in uevt.calls:
        assert build_parser().parse_args(call).exit_style == "bisect"


@pytest.mark.parametrize("code", [0, 1, 125, 129])
def test_exit_code_reaches_git(tmp_path: Path, code: int) -> None:
    uevt = FakeUevt(tmp_path, f"exit {code}")
    (tmp_path / "Makefile").write_text("olddefconfig bzImage:\n")
    assert uevt.called_by("git-bisect.sh", cwd=tmp_path) == code


@pytest.mark.parametrize("script", ["autopkgtest/user-events", "git-bisect.sh"])
@pytest.mark.parametrize("end", ["exit 1", "kill $PPID; sleep 0.2"], ids=["ended", "killed"])
def test_temporary_directory_is_removed(tmp_path: Path, script: str, end: str) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "Makefile").write_text("olddefconfig bzImage:\n")
    uevt = FakeUevt(tmp_path, end)
    temporary = str(tmp_path / "tmp")
    assert uevt.called_by(script, cwd=tmp_path, TMPDIR=temporary, AUTOPKGTEST_ARTIFACTS="") > 0
    assert any(word.startswith(str(tmp_path / "tmp")) for word in uevt.calls[0])
    assert list((tmp_path / "tmp").iterdir()) == []


def test_lava_passes_the_image(tmp_path: Path) -> None:
    """LAVA sets parameters as shell variables and does not export them."""
    (step,) = re.findall(r"^    - (.*kselftest\.sh)$", (CI / "lava.yaml").read_text(), re.MULTILINE)
    uevt = FakeUevt(tmp_path)
    environment = {**os.environ, "UEVT": str(uevt.path)}
    words = ["sh", "-c", f"IMAGE=/boot/mine\n{step}"]
    subprocess.run(words, cwd=CI.parents[1], env=environment, check=False, timeout=SECONDS)
    assert build_parser().parse_args(uevt.calls[0]).image == "/boot/mine"
