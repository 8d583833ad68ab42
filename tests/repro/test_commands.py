"""`uevt repro` and `uevt bundle`: what they print, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results.case_result import Evidence, Mismatch
from conformance.results.outcome import Outcome
from tests.conftest import Uevt
from tests.report.samples import case, run, stored
from tests.repro.test_recorded_run import CASE, FIXED, program


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
    words: list[str],
    contradicted: Path,
    uevt: Uevt,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(contradicted)
    says = "only a literal of the case differs, test_eprobe.py:54: the program would exit 0"
    assert says in uevt(words[0], contradicted, *words[1:], code=2).err
    assert not Path("f.json").exists()


@pytest.mark.parametrize(("name", "word"), [("mine.c", "mine.c"), ("my own.c", "'my own.c'")])
def test_a_program_names_its_own_file(name: str, word: str, tmp_path: Path, uevt: Uevt) -> None:
    uevt("repro", CASE, "--out", tmp_path / name)
    assert f"-o repro {word}\n" in (tmp_path / name).read_text()
    assert f"-o repro {CASE}.c\n" in uevt("repro", CASE).out


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
