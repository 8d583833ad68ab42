"""Output of `uevt run` to a pipe, to a terminal, and as KTAP."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from subprocess import CompletedProcess

import pexpect
import pytest

from kernels.store.built_kernel import BuiltKernel
from tests.commands import PATIENCE, PLAIN, ended, uevt
from tests.enclosure import ROOT, UEVT
from tests.report.export.ktap_reader import read_ktap

FEW = ("-k", "status.nothing_registered or status.file_mode")


def few(out: Path, *words: object, code: int = 0, **environment: str) -> CompletedProcess[str]:
    """Judge two cases on the model."""
    given = ("--kernel", "model", *FEW, "--out", out, *words)
    return uevt("run", *given, code=code, **environment)


def test_pipe_gets_only_the_summary(tmp_path: Path) -> None:
    done = few(tmp_path / "out")
    kernel, host, applying, *shown = done.stdout.splitlines()
    assert (kernel, host) == ("kernel    model, profile 6.12.117", "host      none")
    assert applying.startswith("applying  1,")
    assert shown == [
        f"results   {tmp_path / 'out'}",
        f"report    {tmp_path / 'out' / 'report.html'}",
        "uevt: model (profile 6.12.117) self-check ok: 2 cases",
    ]
    assert done.stderr == ""


def test_paths_are_relative_to_the_working_directory(tmp_path: Path) -> None:
    judge = [*UEVT, "run", "--kernel", "model", *FEW, "--force", "--out", str(tmp_path / "out")]
    for directory, shown in ((tmp_path, "out"), (ROOT, str(tmp_path / "out"))):
        done = ended(["env", "-C", str(directory), *judge])
        assert f"\nresults   {shown}\n" in done.stdout


def test_a_working_directory_that_was_removed(tmp_path: Path) -> None:
    judge = shlex.join([*UEVT, "run", "--kernel", "model", *FEW, "--out", str(tmp_path / "out")])
    ended(["sh", "-c", f"mkdir {tmp_path}/gone; cd {tmp_path}/gone; rmdir ../gone; {judge}"])


def test_in_a_workflow_the_verdict_stays_the_last_line(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    done = few(tmp_path / "out", code=0, **github)
    verdict = "uevt: model (profile 6.12.117) self-check ok: 2 cases"
    assert (done.stdout.splitlines()[-1], done.stderr) == (verdict, "")
    assert summary.read_text() == f"<h3>{verdict}</h3>\n\n"


def test_terminal_shows_a_progress_line(tmp_path: Path) -> None:
    words = ("run", "--kernel=model", "-k=status.nothing_registered", f"--out={tmp_path / 'out'}")
    said, code = pexpect.run(  # type: ignore[str-unpack]
        shlex.join([*UEVT, *words]),
        cwd=str(ROOT),
        env={**os.environ, **PLAIN},
        timeout=PATIENCE,
        withexitstatus=True,
        encoding="utf-8",
    )
    assert code == 0, said
    assert "\r\x1b[Kuevt: model 1/1  status.nothing_registered\r\x1b[Kkernel " in str(said)
    assert str(said).endswith("\x1b[32mself-check ok\x1b[0m: 1 case\r\n")


def test_ktap_has_standard_output_for_itself(tmp_path: Path) -> None:
    done = few(tmp_path / "out", "--ktap", "-")
    top = read_ktap(done.stdout)
    assert {each.name for each in top.subtests} == {
        "status.nothing_registered",
        "status.file_mode",
        "uevt.run",
    }
    assert done.stderr.endswith("uevt: model (profile 6.12.117) self-check ok: 2 cases\n")


def test_ktap_of_guests_side_by_side(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """In the order in which cases end; the evidence comes before a result that fails the run."""
    abi = "--abi=6.12,ebadf_when_disabled=no"
    wanted = "dated.ebadf_when_disabled or status.nothing_registered"
    cases = ("-k", wanted, "-n", "2", "--strict")
    out = f"--out={tmp_path / 'out'}"
    words = ("run", "--image", built_kernel.image, abi, *cases, out, "--ktap", "-", "-q")
    done = uevt(*words, code=1)
    entries = {each.name: each for each in read_ktap(done.stdout).subtests}
    assert {name: each.ok for name, each in entries.items()} == {
        "dated.ebadf_when_disabled": False,
        "status.nothing_registered": True,
        "uevt.run": True,
    }
    assert any("kernel  " in line for line in entries["dated.ebadf_when_disabled"].diagnostics)
    printed = done.stderr.splitlines()
    assert [line.split()[0] for line in printed] == ["CHANGED", "uevt:"]


def test_ktap_of_several_kernels(tmp_path: Path) -> None:
    """One subtest per kernel; a kernel that cannot be judged is reported, and others follow."""
    nowhere = {"UEVT_MIRROR": f"file://{tmp_path}", "UEVT_CACHE": str(tmp_path / "store")}
    done = few(tmp_path / "out", "--kernel=5.19", "--ktap=-", code=3, **nowhere)
    model, absent = read_ktap(done.stdout).subtests
    assert (model.name, model.ok, len(model.subtests)) == ("model", True, 3)
    assert (absent.name, absent.ok, absent.detail) == ("5.19", False, "it did not begin")


def test_unknown_kernel_prints_no_ktap(tmp_path: Path) -> None:
    """A usage error, before the first kernel is judged."""
    assert few(tmp_path / "out", "--kernel=6.99", "--ktap=-", code=2).stdout == ""


def test_ktap_into_a_file(tmp_path: Path) -> None:
    file = tmp_path / "run.ktap"
    file.write_text("older\n" * 1000)
    done = few(tmp_path / "out", "-q", "--ktap", file)
    assert done.stdout == "uevt: model (profile 6.12.117) self-check ok: 2 cases\n"
    assert len(read_ktap(file.read_text()).subtests) == 3


def test_ktap_appends_to_an_inherited_file(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("before\n")
    words = [*UEVT, "run", "--kernel", "model", *FEW, f"--out={tmp_path / 'out'}", "--ktap=-"]
    with file.open("a") as log:
        subprocess.run(words, stdout=log, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=True)
    text = file.read_text()
    assert text.startswith("before\n")
    assert len(read_ktap(text.removeprefix("before\n")).subtests) == 3


def test_ktap_that_cannot_be_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = few(out, "--ktap", tmp_path, code=2)
    assert done.stderr.startswith(f"uevt: {tmp_path}: cannot be written: ")
    assert not out.exists()


def test_reader_of_the_summary_may_close_it(tmp_path: Path) -> None:
    words = [*UEVT, "run", "--kernel", "model", *FEW, f"--out={tmp_path / 'out'}"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        words, stdout=write, stderr=subprocess.PIPE, timeout=PATIENCE, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "out" / "results.json").exists()


def test_appended_arguments_reach_the_guest(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """Several arguments in one --append, and quoted ones."""
    words = ("-n", "1", "-k", "status.nothing_registered", f"--out={tmp_path / 'out'}")
    more = ("--append", 'uevt.one=1 uevt.two="b c"', "--append", "uevt.three='d'")
    uevt("run", "--image", built_kernel.image, *words, *more)
    console = (tmp_path / "out" / "console.log").read_text()
    assert """ uevt.one=1 uevt.two="b c" uevt.three='d' rdinit=""" in console


def test_argument_that_breaks_the_boot_is_named(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    """An error of the host without a verdict, after two boots in all."""
    words = ("-n", "1", "-k", "status.", f"--out={tmp_path / 'out'}", "-q")
    done = uevt("run", "--image", built_kernel.image, *words, "--append", "mem=20M", code=3)
    *printed, verdict = done.stdout.splitlines()
    assert len(printed) >= 5
    for line in printed:
        assert line.startswith("ERROR status.")
        assert "or leave out --append mem=20M" in line
    assert " ERROR: 0 passed" in verdict
    console = (tmp_path / "out" / "console.log").read_text()
    assert console.count("Linux version") == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("x" * 2100, "the limit is 2047"),
        ('a="b', "leaves a quotation open"),
        ("a -- b", "leave the -- out"),
    ],
    ids=["long", "quote", "init"],
)
def test_invalid_arguments_are_refused(
    tmp_path: Path, built_kernel: BuiltKernel, given: str, said: str
) -> None:
    words = ("--image", built_kernel.image, "--out", tmp_path / "out", "--append", given)
    done = uevt("run", *words, code=2)
    (line,) = done.stderr.splitlines()
    assert said in line
    assert not (tmp_path / "out").exists()
