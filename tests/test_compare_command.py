"""`uevt compare`: finding runs, kernels and exit codes."""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.results import kernel_config
from conformance.results.case_result import CaseResult
from conformance.results.directory import link_latest
from conformance.results.outcome import Level, Outcome
from conformance.results.results_json import NAME
from conformance.results.run import KernelFacts, RunRecord
from tests.conftest import Uevt
from tests.report.samples import PATCHED, case, head, run, stored, wrong

C, F = Outcome.CRASH, Outcome.FAIL


@pytest.fixture
def compared(uevt: Uevt) -> Uevt:
    """Run `uevt compare`."""
    return partial(uevt, "compare")


def test_a_regression_is_found_and_printed_as_json(tmp_path: Path, compared: Uevt) -> None:
    good = stored(tmp_path / "6.12" / "20261120T174400Z", run(case("a.b"), case("a.c")))
    # Judged differently by another revision of the suite: not flaky.
    stored(tmp_path / "6.12" / "20261119T000000Z", run(case("a.b", F), head=head(suite="0.0.9")))
    link_latest(good)
    bad = stored(tmp_path / "bad", run(wrong("a.b"), case("a.c")))
    words = compared(tmp_path / "6.12", bad, code=1).out.split()
    assert " ".join(words).endswith("REGRESSION: 1 newly deviating (contract), 1 as before")
    assert "1 fixed" in compared(bad / NAME, tmp_path / "6.12").out
    data = json.loads(compared("--json", good, bad, code=1).out)
    assert data["regression"] is True
    assert data["same"] == 1
    (change,) = data["changes"]
    assert (change["case"], change["kind"], change["regression"]) == ("a.b", "broken", True)
    assert (change["base"]["outcome"], change["new"]["outcome"]) == ("PASS", "FAIL")
    assert change["new"]["mismatches"][0]["observed"] == "0"


def test_the_line_decides_what_is_a_regression(tmp_path: Path, compared: Uevt) -> None:
    good = stored(tmp_path / "good", run(case("a.b")))
    weak = wrong("a.b", outcome=Outcome.CHANGED, level=Level.BEHAVIOUR)
    changed = stored(tmp_path / "changed", run(weak))
    assert "newly deviating: undocumented behaviour (1)" in compared(good, changed).out
    compared("--fail-on", "behaviour", good, changed, code=1)
    (change,) = json.loads(compared("--json", good, changed).out)["changes"]
    assert (change["level"], change["regression"]) == ("behaviour", False)


def test_a_run_without_a_verdict_is_no_success(tmp_path: Path, compared: Uevt) -> None:
    good = stored(tmp_path / "good", run(case("a.b")))
    cut = stored(tmp_path / "cut", run(case("a.b"), selected=2))
    compared(good, cut, code=3)


@pytest.mark.parametrize("what", ["nothing", "several", "self-check"])
def test_a_side_without_one_kernel_is_refused(what: str, tmp_path: Path, compared: Uevt) -> None:
    good = stored(tmp_path / "good", run(case("a.b")))
    other = tmp_path / "other"
    if what == "several":
        stored(other / "1", run(case("a.b")))
        stored(other / "2", run(case("a.b"), head=head(kernel=PATCHED)))
    elif what == "self-check":
        stored(other, run(case("a.b"), head=head(self_check=True)))
    assert compared(good, other, code=2).err.startswith(f"uevt: {other}")


BUILD = KernelFacts("6.12", "6.12.117", "6.12", build="d98b")


def same_build(day: int, *cases: CaseResult, **others: Any) -> RunRecord:
    """A run of one build on a day of November."""
    kernel = replace(BUILD, **others)
    return run(*cases, head=head(kernel=kernel, started=f"2026-11-{day:02}T00:00:00Z"))


def several(directory: Path, *records: RunRecord) -> Path:
    """A directory of runs without `latest`."""
    for number, record in enumerate(records):
        stored(directory / f"run{number}", record)
    return directory


def test_flaky_cases_are_no_regression(tmp_path: Path, compared: Uevt) -> None:
    right = [same_build(day, case("a.b"), case("a.c")) for day in (1, 2)]
    base = several(tmp_path / "base", *right)
    runs = [wrong("a.b"), case("a.b"), wrong("a.b")]
    patched = [
        same_build(day, each, case("a.c"), id="6.12+fix", build="77c0")
        for day, each in enumerate(runs, 1)
    ]
    new = several(tmp_path / "new", *patched)
    output = compared(base, new).out
    assert "(one of 3 runs of this kernel)" in " ".join(output.split())
    assert "base: PASS in 2 of 2; new: PASS in 1, FAIL in 2 of 3" in output
    assert output.endswith("no regression: 1 flaky, 1 as before\n")
    # One run of each, the others given as options.
    first = [base / "run0", new / "run0"]
    compared(*first, code=1)
    printed = compared(*first, "--base", base / "run1", "--new", new / "run1")
    assert "new: PASS in 1, FAIL in 1 of 2" in printed.out
    printed = compared(*first, "--new", base / "run1", code=2)
    assert "is of another kernel or build than" in printed.err


def test_one_build_compared_with_itself_has_no_regression(tmp_path: Path, compared: Uevt) -> None:
    good = stored(tmp_path / "good", same_build(1, case("a.b")))
    bad = stored(tmp_path / "bad", same_build(2, case("a.b", C)))
    output = compared(good, bad).out
    assert "build is the same: the kernel did not change" in output
    assert "base: PASS in 1 of 1; new: CRASH in 1 of 1" in output
    edited = stored(tmp_path / "edited", same_build(3, case("a.b", C), build="another"))
    assert "build differs in patches" in compared(good, edited, code=1).out


def test_an_unreadable_run_is_ignored(tmp_path: Path, compared: Uevt) -> None:
    base = several(tmp_path / "base", *(same_build(day, case("a.b")) for day in (1, 2)))
    (base / "half").mkdir()
    (base / "half" / NAME).write_text('{"schema": 1')
    assert "ignored: " in compared(base, base / "run0").err


def test_configurations_are_compared_by_option(tmp_path: Path, compared: Uevt) -> None:
    texts = ["CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\n", "CONFIG_A=y\nCONFIG_D=y\n"]
    runs = []
    for number, text in enumerate(texts):
        (tmp_path / "config").write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        record = same_build(1, case("a.b"), config_sha256=digest, build=str(number))
        runs.append(stored(tmp_path / str(number), record))
        kernel_config.keep(tmp_path / "config", runs[-1])
    options = json.loads(compared("--json", *runs).out)["config"]
    assert options == {"CONFIG_B": ["m", "n"], "CONFIG_D": ["n", "y"]}
    differs = "config differs in 2 options: CONFIG_B m -> n, CONFIG_D n -> y"
    assert differs in compared(*runs).out
    # A configuration with another digest, or none, is ignored.
    for spoil in (lambda file: file.write_bytes(gzip.compress(b"CONFIG_A=n")), Path.unlink):
        spoil(runs[0] / kernel_config.NAME)
        assert "(only its digests are known)" in " ".join(compared(*runs).out.split())
