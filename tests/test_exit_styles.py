"""Exit codes of `uevt run` for every ending, in every style."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from conformance.cli import run
from conformance.cli.main import main
from conformance.session import __main__ as session
from host.progress import silent
from kernels.catalog.catalog import load_catalog
from kernels.store.built_kernel import BuiltKernel, Recipe
from kernels.store.store import Store
from tests.enclosure import ROOT, UEVT
from tests.kernels.fake_make import FakeMake
from tests.processes import wait_for

# Seconds for four runs at once on a busy machine.
PATIENCE = 600
STYLES = ("default", "kselftest", "autopkgtest", "bisect")
QUICK = ("-n", "1", "-k", "status.nothing_registered")
# A switch that 6.12 has, so that judging without it fails.
LACKING = (
    *("--abi", "6.12,ebadf_when_disabled=no", "-n", "1", "-k", "dated.ebadf_when_disabled"),
    "--strict",
)

Codes = tuple[int, int, int, int]


def codes(
    *arguments: str,
    out: Path | None = None,
    environment: Mapping[str, str] | None = None,
    interrupt: bool = False,
) -> Codes:
    """The exit codes of one command in the four styles, run side by side."""
    with ExitStack() as stack:
        runs = []
        for style in STYLES:
            words = [*UEVT, "run", *arguments, "--exit-style", style]
            words += [f"--out={out / style}"] if out is not None else []
            runs.append(
                stack.enter_context(
                    subprocess.Popen(
                        words,
                        cwd=ROOT,
                        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE,
                        text=True,
                    )
                )
            )
        if interrupt:
            assert out is not None
            for style, run in zip(STYLES, runs, strict=True):
                journal = out / style / "journal.jsonl"
                wait_for(partial(_has_a_case, journal), "result of a case", PATIENCE)
                run.send_signal(signal.SIGINT)
        for style, run in zip(STYLES, runs, strict=True):
            # Shown if the exit code is wrong.
            print(style, run.communicate(timeout=PATIENCE)[1])  # noqa: T201
        default, kselftest, autopkgtest, bisect = [run.returncode for run in runs]
    return default, kselftest, autopkgtest, bisect


def _has_a_case(journal: Path) -> bool:
    return journal.exists() and '"event": "case"' in journal.read_text()


def test_pass(tmp_path: Path) -> None:
    assert codes("--kernel", "model", *QUICK, out=tmp_path) == (0, 0, 0, 0)


def test_unexpected(tmp_path: Path, built_kernel: BuiltKernel) -> None:
    image = str(built_kernel.image)
    assert codes("--image", image, *LACKING, out=tmp_path) == (1, 1, 1, 1)


def test_not_built(tmp_path: Path, kernel_without_user_events: BuiltKernel) -> None:
    """PASS for a user's kernel; a failure with --require."""
    image = str(kernel_without_user_events.image)
    assert codes("--image", image, *QUICK, out=tmp_path / "1") == (0, 4, 77, 125)
    assert codes("--image", image, "--require", *QUICK, out=tmp_path / "2") == (1, 1, 1, 1)


def test_not_built_of_the_catalog(tmp_path: Path, kernel_without_user_events: BuiltKernel) -> None:
    kernel = ("--kernel", kernel_without_user_events.name)
    assert codes(*kernel, *QUICK, out=tmp_path) == (3, 4, 77, 125)


def test_host(
    tmp_path: Path, built_kernel: BuiltKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    """No QEMU on PATH."""
    bare = {"PATH": str(Path(sys.executable).parent)}
    image = str(built_kernel.image)
    assert codes("--image", image, environment=bare, out=tmp_path) == (3, 1, 1, 129)
    assert capsys.readouterr().out.count("qemu") >= len(STYLES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("broken", ["fail", "drop"])
def test_build_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """A failing compiler, and a config option that the tree lacks: git bisect skips both."""
    make = FakeMake(tmp_path / "make")
    (make.directory / broken).write_text("CONFIG_USER_EVENTS\n")
    store = Store(tmp_path / "store")
    entry = load_catalog().find("6.12")
    tree = store.sources / f"{entry.source.package}_6.12.1-1"
    tree.mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\n")
    with store.locked("a test", silent):
        store.remember(entry, Recipe(entry.source.package, "6.12.1-1", (), "", "gcc 0"), "")
    monkeypatch.setenv("PATH", str(make.directory), prepend=":")
    monkeypatch.setenv("UEVT_CACHE", str(store.root))
    assert codes("--kernel", "6.12") == (3, 1, 1, 125)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--kernel", "6.99"),
        ("--kernel", "model", "-k", "no.such"),
        ("--kernel", "model", "--kernel", "6.99", "-k", "status.nothing_registered"),
        ("--no-such-option",),
        (),
    ],
    ids=["kernel", "nothing-selected", "one-of-several", "option", "nothing"],
)
def test_usage(arguments: tuple[str, ...]) -> None:
    assert codes(*arguments) == (2, 1, 1, 129)


def test_not_applicable(tmp_path: Path) -> None:
    """-k matches cases of other releases only: no mistake of a lab that runs them everywhere."""
    older = ("--kernel", "model", "--abi", "6.1", "-k", "instance.multi_format")
    assert codes(*older, out=tmp_path) == (2, 4, 77, 129)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("style", "code"), [("default", 3), ("bisect", 129)])
def test_traceback_is_no_verdict(
    style: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python's own exit code would be that of a FAIL."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    words = ["--kernel=model", f"--exit-style={style}"]
    monkeypatch.setattr(pytest, "main", broken)
    assert session.main(words) == code
    gc.enable()
    monkeypatch.setattr(run, "make_absolute", broken)
    assert main(["run", *words]) == code
    assert capsys.readouterr().err.count("Traceback") == 2


def test_a_skipped_selection_is_in_ktap(tmp_path: Path) -> None:
    words = ("--kernel", "model", "--abi", "6.1", "-k", "instance.multi_format")
    ktap = tmp_path / "ktap"
    subprocess.run([*UEVT, "run", *words, "--ktap", ktap], capture_output=True, check=False)
    reason = "nothing selected: no case matches -k 'instance.multi_format', tier quick"
    assert ktap.read_text().startswith(f"KTAP version 1\n1..0 # SKIP {reason}")


def test_a_mistake_that_pytest_finds_is_no_skip() -> None:
    """Its exit code is the 4 of kselftest."""
    session = (sys.executable, "-m", "conformance.session.__main__", "-puevt", "--noconftest")
    words = ("--assert=plain", "--exit-style=kselftest", "/no/such/case.py")
    done = subprocess.run([*session, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "file or directory not found" in done.stderr) == (1, True)


def test_interrupted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """130 in every style: it ends a shell loop and git bisect."""
    whole = ("--kernel", "model", "--tier", "full")
    assert codes(*whole, out=tmp_path, interrupt=True) == (130, 130, 130, 130)
    printed = capsys.readouterr().out
    for style in STYLES:
        assert f"uevt: to go on: uevt run --resume {tmp_path / style}\n" in printed
