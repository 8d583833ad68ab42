"""Errors of commands: one line that names the cause and the likely word; files they write."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from conformance.abi.profile import ProfileError
from conformance.cli import one_kernel
from conformance.cli.output import write
from conformance.results.errors import ReportError
from conformance.session import launch
from tests.conftest import Uevt
from vm.errors import VmError


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run --kernal 6.12", "uevt run: unknown option --kernal; did you mean --kernel?"),
        ("run --kernal=6.12", "did you mean --kernel=6.12?"),
        ("run 6.12", "uevt run: unexpected argument '6.12'; did you mean --kernel 6.12?"),
        ("run --kernel model -q x", "uevt run: unexpected argument 'x'; see uevt run --help"),
        ("rum", "did you mean run?"),
        ("6.12", "did you mean run --kernel 6.12?"),
        ("kernels biuld", "uevt kernels: argument VERB: invalid choice 'biuld', not of list,"),
        ("kernels gc --older -1", "argument --older: invalid days value: '-1'"),
        ("kernels gc --older nan", "argument --older: invalid days value: 'nan'"),
        ("run --kernel model -k EMPTY", "-k is empty; give a part of a case id"),
    ],
)
def test_mistake_is_named(uevt: Uevt, words: str, message: str) -> None:
    given = ["" if word == "EMPTY" else word for word in words.split()]
    printed = uevt(*given, code=2)
    assert message in printed.err
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "/dev/null", "--kernel", "model"),
        ("pull-lab", "/dev/null", "--origin", "lab", "--out", "/dev/null/none"),
    ],
    ids=lambda words: words[0],
)
def test_a_device_is_no_file(uevt: Uevt, words: tuple[str, ...]) -> None:
    # Reading /dev/zero would not end.
    assert "not a regular file; " in uevt(*words, code=2).err


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("replay", ("--kernel", "model"), "is not a file of uevt bundle"),
        ("pull-lab", ("--origin", "lab", "--out", "/dev/null/none"), "has 0 of type user_events"),
    ],
    ids=["replay", "pull-lab"],
)
def test_a_pipe_is_read(uevt: Uevt, command: str, options: tuple[str, ...], message: str) -> None:
    """As in `curl ... | uevt pull-lab /dev/stdin`."""
    ours, theirs = os.pipe()
    os.write(theirs, b"{}")
    os.close(theirs)
    try:
        assert message in uevt(command, f"/dev/fd/{ours}", *options, code=2).err
    finally:
        os.close(ours)


@pytest.mark.parametrize(
    ("command", "option", "content", "message"),
    [
        ("run --kernel 6.12 --kernel 6.1", "--patch", b"no", "/pipe: is no patch"),
        ("run --kernel 6.12 --against base", "--patch", b"no", "/pipe: is no patch"),
        (
            "bisect --case write.returns_all_bytes --good a --bad b",
            "--config",
            b"",
            "the pipe is empty",
        ),
    ],
    ids=["kernels", "against", "bisect"],
)
def test_a_pipe_is_kept_for_later_sessions(
    uevt: Uevt,
    command: str,
    option: str,
    content: bytes,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UEVT_CACHE", str(tmp_path))
    ours, theirs = os.pipe()
    os.write(theirs, content)
    os.close(theirs)
    try:
        assert message in uevt(*command.split(), option, f"/dev/fd/{ours}", code=2).err
    finally:
        os.close(ours)


@pytest.mark.parametrize("command", ["compare", "report"])
def test_a_fifo_is_no_run(uevt: Uevt, tmp_path: Path, command: str) -> None:
    os.mkfifo(fifo := tmp_path / "fifo")
    message = f"{fifo}: is neither a directory nor a regular file; "
    assert message in uevt(command, fifo, fifo, code=2).err


@pytest.mark.parametrize(("words", "verb"), [([], "matrix"), (["kernels"], "build")])
def test_help_for_a_command_without_its_verb(uevt: Uevt, words: list[str], verb: str) -> None:
    printed = uevt(*words, code=2)
    assert printed.out == ""
    assert printed.err.startswith(f"usage: {' '.join(['uevt', *words])} ")
    assert verb in printed.err


def test_an_installation_without_its_checkout(
    uevt: Uevt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(launch, "ROOT", tmp_path)
    printed = uevt("run", "--kernel", "model", code=2)
    assert f"{tmp_path} has no pyproject.toml: uevt was installed without" in printed.err
    assert "pip install -e CHECKOUT" in printed.err


@pytest.mark.parametrize(
    ("name", "words"),
    [("client", ["--", "true"]), ("explore", []), ("selftests", []), ("shell", [])],
)
@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (ProfileError("no such ABI"), 2, "no such ABI; only kernels with user_events can be "),
        (VmError("no KVM", hint="use TCG"), 3, "no KVM; use TCG"),
    ],
)
def test_errors_of_the_target_have_a_hint(
    name: str,
    words: list[str],
    error: Exception,
    code: int,
    printed: str,
    uevt: Uevt,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(_: object) -> None:
        raise error

    monkeypatch.setattr(one_kernel, "resolve", resolve)
    assert f"uevt: {printed}" in uevt(name, "--kernel", "6.12", *words, code=code).err


@pytest.mark.parametrize(
    ("before", "after"),
    [(signal.SIG_IGN, signal.SIG_IGN), (signal.SIG_DFL, signal.default_int_handler)],
)
def test_nohup_lets_a_command_outlive_its_terminal(
    before: Any, after: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_kernel, "make_absolute", lambda _: None)
    monkeypatch.setattr(one_kernel, "resolve", lambda _: None)
    own = signal.signal(signal.SIGHUP, before)
    try:
        with one_kernel.resolved(Namespace(), "run"):
            assert signal.getsignal(signal.SIGHUP) == after
    finally:
        signal.signal(signal.SIGHUP, own)


def test_the_target_of_a_link_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write("text", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_full_disk_is_no_error_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        write("text", Path("/dev/full"))
    with pytest.raises(ReportError, match="cannot be written: No such file"):
        write("text", tmp_path / "none" / "file")
