"""`uevt repro`, `uevt bundle` and `uevt replay`: what they print, and what they refuse."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import NoReturn

import pytest

from conformance.cli import one_kernel, replay
from conformance.results.bundle import VERSION, Bundle
from conformance.results.case_result import Evidence, Mismatch
from conformance.results.outcome import Outcome
from conformance.session.target.target import Target
from tests.conftest import Uevt
from tests.report.samples import case, head, run, stored
from tests.repro.test_recorded_run import CASE, FIXED, program
from vm.errors import HostTrouble


@pytest.fixture
def contradicted(tmp_path: Path) -> Path:
    """A run whose kernel and model contradict a literal of a case."""
    mismatch = Mismatch(0, "literal", "== 2", "1")
    evidence = Evidence(program=program(FIXED))
    place = {"file": "test_eprobe.py", "line": 54}
    result = case(CASE, Outcome.FAIL, mismatches=(mismatch,), evidence=evidence, **place)
    stored(tmp_path / "run", run(result))
    return tmp_path / "run"


@pytest.mark.parametrize("words", [["repro"], ["bundle", "--out", "f.json"]])
def test_a_contradicted_literal_is_no_program(
    words: list[str], contradicted: Path, uevt: Uevt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(contradicted)
    says = "only a literal of the case differs, test_eprobe.py:54: the program would exit 0"
    assert says in uevt(words[0], contradicted, *words[1:], code=2).err
    assert not Path("f.json").exists()


def test_an_operation_of_a_newer_uevt_is_no_program(tmp_path: Path, uevt: Uevt) -> None:
    stored(tmp_path, run(case(CASE, Outcome.FAIL, evidence=Evidence(program=program(FIXED)))))
    results = tmp_path / "results.json"
    results.write_text(results.read_text().replace('"op": "', '"op": "New'))
    assert "no operation is called 'New" in uevt("repro", tmp_path, code=2).err


@pytest.mark.parametrize(("name", "word"), [("mine.c", "mine.c"), ("my own.c", "'my own.c'")])
def test_a_program_names_its_own_file(name: str, word: str, tmp_path: Path, uevt: Uevt) -> None:
    uevt("repro", CASE, "--out", tmp_path / name)
    assert f"-o repro {word}\n" in (tmp_path / name).read_text()
    assert f"-o repro {CASE}.c\n" in uevt("repro", CASE).out
    assert uevt("repro", CASE, "--out", "-") == uevt("repro", CASE)


def test_a_case_is_named_once(uevt: Uevt) -> None:
    says = f"{CASE} does not exist, and -k is of a RUN; name a directory of results, or omit -k"
    assert says in uevt("repro", CASE, "-k", "write.returns_all_bytes.u8", code=2).err
    assert "6.12 does not exist, and -k" in uevt("repro", "6.12", "-k", CASE, code=2).err


@pytest.mark.parametrize(
    ("case", "abi", "kernels"),
    [
        ("unregister.clears_the_bit", "6.1", "6.4 and later"),
        ("perf.bpf_without_sink", "6.12", "kernels without perf_sink"),
    ],
)
def test_what_a_case_applies_to(case: str, abi: str, kernels: str, uevt: Uevt) -> None:
    says = f"{case} does not apply to {abi}, only to {kernels}; name another ABI: --abi\n"
    assert says in uevt("repro", case, "--abi", abi, code=2).err


def bundle(name: str, abi: str, directory: Path) -> Path:
    """A bundle of a case, with the answers of an ABI."""
    evidence = Evidence(program=program(abi, name))
    reason = "a reason of more columns than a line has, since it names a switch " * 3
    result = case(name, Outcome.FAIL, reason=reason, evidence=evidence)
    path = directory / "f.json"
    path.write_text(Bundle(VERSION, head(), result).text)
    return path


def test_replay_ends_with_two_lists(tmp_path: Path, uevt: Uevt) -> None:
    path = bundle(CASE, FIXED, tmp_path)
    lines = uevt("replay", path, "--kernel", "model", code=1).out.splitlines()
    assert "model: diverges otherwise than recorded" in lines
    assert '  16. root: cat trace = "entries: 1/1" and 1 more line' in lines
    assert lines[-2:] == ["as recorded: no kernel", "otherwise: model"]
    assert max(map(len, lines)) <= 100


def test_replay_reads_a_pipe_for_all_kernels(
    tmp_path: Path, uevt: Uevt, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved: list[str] = []

    def resolve(options: Namespace) -> Target:
        resolved.extend(Path(each).read_text() for each in options.patch)
        return Target(options.kernel, "6.1.192", image=tmp_path / "none")

    monkeypatch.setenv("UEVT_CACHE", str(tmp_path / "store"))
    monkeypatch.setattr(one_kernel, "resolve", resolve)
    ours, theirs = os.pipe()
    os.write(theirs, b"a patch")
    os.close(theirs)
    words = ("--kernel", "6.1", "--kernel", "6.1-two-pages", "--patch", f"/dev/fd/{ours}")
    uevt("replay", bundle("unregister.clears_the_bit", "6.12", tmp_path), *words, code=2)
    os.close(ours)
    assert resolved == ["a patch", "a patch"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("unregister.clears_the_bit", ", only to 6.4 and later"),
        ("write.returns_all_bytes.u8", ": its ioctl(2) interface is not that of 6.12"),
    ],
)
def test_replay_does_not_run_what_does_not_apply(
    name: str, why: str, tmp_path: Path, uevt: Uevt, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Target("6.1", "6.1.192", image=tmp_path / "none")
    monkeypatch.setattr(one_kernel, "resolve", lambda _: other)
    path = bundle(name, "6.12", tmp_path)
    lines = uevt("replay", path, "--kernel", "6.1", code=2).out.splitlines()
    assert lines[-3:] == [
        f"6.1: does not apply{why}",
        "as recorded: no kernel",
        "otherwise: no kernel",
    ]


def test_replay_goes_on_behind_a_guest_that_fails(
    tmp_path: Path, uevt: Uevt, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = {name: Target(name, "6.12.117", image=tmp_path / "none") for name in ("6.12", "6.14")}
    monkeypatch.setattr(one_kernel, "resolve", lambda options: targets[options.kernel])

    def failing(program: object, target: Target) -> NoReturn:
        raise HostTrouble(f"{target.id} does not boot", hint="read its console")

    monkeypatch.setattr(replay, "_executor", failing)
    path = bundle(CASE, "6.12", tmp_path)
    lines = uevt("replay", path, "--kernel", "6.12", "--kernel", "6.14", code=3).out.splitlines()
    assert lines[-4:] == [
        "6.12: its guest failed: 6.12 does not boot; read its console",
        "6.14: its guest failed: 6.14 does not boot; read its console",
        "as recorded: no kernel",
        "otherwise: no kernel",
    ]


@pytest.mark.parametrize(
    ("file", "kernel", "message"),
    [
        ("none", "model", "none: No such file or directory; name a file that uevt bundle wrote"),
        ("mine.c", "model", "mine.c: is not a file of uevt bundle; name a file that uevt bundle"),
        ("results.json", "model", "results.json: is not a file of uevt bundle"),
        ("newer.json", "model", "newer.json: no operation is called 'New"),
        ("f.json", "nope", "unknown kernel 'nope'"),
    ],
)
def test_replay_runs_nothing_after_a_mistake(
    file: str, kernel: str, message: str, tmp_path: Path, uevt: Uevt
) -> None:
    text = bundle(CASE, FIXED, tmp_path).read_text()
    (tmp_path / "newer.json").write_text(text.replace('"op": "', '"op": "New'))
    (tmp_path / "mine.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "results.json").write_text('{"schema": 1}')
    printed = uevt("replay", tmp_path / file, "--kernel", "model", "--kernel", kernel, code=2)
    assert message in printed.err
    assert printed.out == ""
