"""`uevt history` over a directory of runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.report.history.store import Store
from conformance.results.directory import link_latest
from conformance.results.outcome import Outcome
from conformance.results.results_json import NAME
from conformance.results.run import KernelFacts, RunRecord
from conformance.results.stored_runs import release_key
from tests.conftest import Printed, Uevt
from tests.report.samples import case, head, run, stored

History = Callable[..., Printed]
P, F, XF, S, E = Outcome.PASS, Outcome.FAIL, Outcome.XFAIL, Outcome.SKIP, Outcome.ERROR


def record(
    kernel: str, day: int, *outcomes: Outcome, release: str = "", suite: str = "0.1.0", **facts: str
) -> RunRecord:
    """A run on a day of November: cases a.a, a.b and so on."""
    release = release or kernel
    plain = KernelFacts(kernel, release, release, build=release)
    shown = replace(plain, **facts)
    cases = [
        case(f"a.{letter}", outcome, digest="aa", course="0a")
        for letter, outcome in zip("abcdef", outcomes, strict=False)
    ]
    started = f"2026-11-{day:02}T12:00:00Z"
    return run(*cases, head=head(kernel=shown, started=started, suite=suite))


def keep(store: Path, *records: RunRecord) -> None:
    """Write runs as `uevt run` does."""
    for each in records:
        stamp = each.head.started.replace("-", "").replace(":", "")
        stored(store / each.head.kernel.id / stamp, each)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Four kernels, one of them patched."""
    keep(
        tmp_path,
        # Not in the order of releases.
        record("7.3", 1, F, P, release="7.3.4"),
        record("6.12", 5, F, P, release="6.12.117"),
        record("6.12", 7, F, F, release="6.12.117"),
        record("6.9", 6, P, P, release="6.9.7"),
        record("6.1", 9, P, P, release="6.1.192"),
        record("6.12+fix", 8, P, P, release="6.12.117"),
    )
    link_latest(tmp_path / "6.12" / "20261107T120000Z")
    return tmp_path


@pytest.fixture
def history(tmp_path: Path, uevt: Uevt) -> History:
    """Run `uevt history` on the runs of a test."""
    return partial(uevt, "history", "--store", tmp_path)


@pytest.mark.parametrize(
    ("older", "newer"),
    [("6.9.7", "6.12"), ("6.12", "6.12.1"), ("6.13.0-rc2", "6.13"), ("6.13-rc2", "6.13-rc10")],
)
def test_releases_are_ordered_as_versions(older: str, newer: str) -> None:
    assert release_key(older) < release_key(newer)
    assert release_key("next-20261120") < release_key(older)


@pytest.mark.usefixtures("store")
def test_the_conclusion_names_a_range_of_releases(history: History) -> None:
    lines = history("a.a").out.splitlines()
    assert lines[-1] == "uevt: a.a: PASS up to 6.9.7, FAIL from 6.12.117"
    assert [line.split()[0] for line in lines[:4]] == ["6.1.192", "6.9.7", "6.12.117", "7.3.4"]
    # A patched kernel says nothing about the release.
    assert any(line.split()[:3] == ["6.12.117", "6.12+fix", "PASS"] for line in lines[5:])


def test_a_difference_between_suites_is_marked(tmp_path: Path, history: History) -> None:
    keep(tmp_path, record("6.1", 1, P, suite="0.1.0"), record("6.2", 1, F, suite="0.2.0"))
    output = " ".join(history("a.a").out.split())
    assert "judged by two revisions of the suite: 6.1 by suite 0.1.0, 6.2 by suite 0.2.0" in output


@pytest.mark.parametrize("changed", ["6.2+", "6.2.0-dirty"])
def test_a_changed_kernel_is_not_part_of_a_range(
    changed: str, tmp_path: Path, history: History
) -> None:
    keep(tmp_path, record("6.1", 1, P), record("tree-6.2", 1, F, release=changed))
    assert history("a.a").out.endswith("uevt: a.a: PASS in 6.1\n")


@pytest.mark.parametrize(
    ("outcomes", "sentence"),
    [
        ([P, P, P], "PASS from 6.1.1 to 6.3.1"),
        ([P, F, P], "PASS up to 6.1.1, FAIL in 6.2.1, PASS from 6.3.1"),
        ([P, S, F], "PASS up to 6.1.1, FAIL from 6.3.1"),
        ([S, E, S], "not judged on any unchanged kernel"),
        ([S, XF, S], "XFAIL in 6.2.1"),
    ],
)
def test_conclusions(
    outcomes: list[Outcome], sentence: str, tmp_path: Path, history: History
) -> None:
    for number, outcome in enumerate(outcomes, 1):
        keep(tmp_path, record(f"6.{number}", 1, outcome, release=f"6.{number}.1"))
    assert history("a.a").out.splitlines()[-1] == f"uevt: a.a: {sentence}"


def test_kernels_of_one_release_have_their_ids(tmp_path: Path, history: History) -> None:
    keep(tmp_path, record("6.12", 1, P, release="6.12.117"))
    keep(tmp_path, record("tree-6.12", 2, F, release="6.12.117"))
    assert history("a.a").out.endswith(
        "PASS up to 6.12.117 (6.12), FAIL from 6.12.117 (tree-6.12)\n"
    )


@pytest.mark.usefixtures("store")
def test_disagreeing_runs_of_one_build_are_flaky(history: History) -> None:
    output = history("a.b").out
    assert "flaky: PASS in 1, FAIL in 1 of 2 runs of one build" in output
    assert output.endswith("PASS up to 6.9.7, flaky in 6.12.117, PASS from 7.3.4\n")


@pytest.mark.parametrize("changed", [{"build": "edited"}, {"suite": "0.2.0"}])
def test_another_build_or_suite_is_not_flaky(
    changed: dict[str, str], store: Path, history: History
) -> None:
    keep(store, record("6.12", 8, F, P, release="6.12.117", **changed))
    assert "PASS in 1 run since 2026-11-08, FAIL before" in history("a.b").out


def test_the_history_of_a_kernel_lists_its_runs(store: Path, history: History) -> None:
    # A run of few cases in between hides nothing.
    keep(store, record("6.12", 6, P, release="6.12.117"))
    assert history("6.12").out.splitlines() == [
        "2026-11-05 12:00  6.12.117 FAIL: 1 PASS, 1 FAIL",
        "    in 6.12/20261105T120000Z, suite 0.1.0, tcg",
        "    2 cases for the first time",
        "2026-11-06 12:00  6.12.117 PASS: 1 PASS",
        "    in 6.12/20261106T120000Z, suite 0.1.0, tcg",
        "    FAIL -> PASS (flaky: same build and suite): a.a",
        "2026-11-07 12:00  6.12.117 FAIL: 2 FAIL",
        "    in 6.12/20261107T120000Z, suite 0.1.0, tcg",
        "    PASS -> FAIL (flaky: same build and suite): a.a, a.b",
        "",
        "uevt: 6.12: 3 runs, outcomes changed in 2, 2 cases flaky",
    ]
    last = "uevt: 6.12.117: 4 runs, outcomes changed in 3, 2 cases flaky\n"
    assert history("6.12.117").out.endswith(last)


@pytest.mark.usefixtures("store")
def test_the_json_document(history: History) -> None:
    document = json.loads(history("a.a", "--json").out)
    assert document["sentence"] == "PASS up to 6.9.7, FAIL from 6.12.117"
    states = [each["state"] for each in document["kernels"]]
    assert states == ["PASS", "PASS", "FAIL", "PASS", "FAIL"]
    document = json.loads(history("6.12", "--json").out)
    assert [each["verdict"] for each in document["runs"]] == ["FAIL", "FAIL"]
    assert document["runs"][1]["changed"] == [
        {"case": "a.b", "was": "PASS", "now": "FAIL", "flaky": True}
    ]


def test_a_function_stands_for_its_variants(tmp_path: Path, history: History) -> None:
    cases = [case("write.parts.one"), case("write.parts.two"), case("write.parts.three", F)]
    keep(tmp_path, replace(record("6.12", 1), cases=tuple(cases), selected=3))
    assert history("write.parts").out.splitlines() == [
        "FAIL in 6.12 (1)",
        "  write.parts.three",
        "PASS in 6.12 (2)",
        "  write.parts.one, write.parts.two",
    ]


def test_an_unknown_subject_gets_suggestions(store: Path, history: History) -> None:
    assert "did you mean 6.1.192" in history("6.1.193", code=2).err
    nowhere = history("6.12", "--store", store / "none", code=2)
    assert "is not a directory" in nowhere.err


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "expected `object`, got `array`"),
        (b'{"name": "package"}', "has no schema"),
    ],
)
def test_an_unreadable_run_is_reported_and_ignored(
    content: bytes, why: str, store: Path, history: History
) -> None:
    foreign = store / "6.12" / "half-\x1b[2Jwritten"
    foreign.mkdir()
    (foreign / NAME).write_bytes(content)
    for _ in range(2):
        printed = history("a.a")
        assert printed.out.endswith("FAIL from 6.12.117\n")
        assert "ignored: 6.12/half-\\x1b[2Jwritten/results.json: " in printed.err
        assert why in printed.err
    (foreign / NAME).unlink()
    assert history("a.a").err == ""


def test_surrogates_are_accepted(store: Path, history: History) -> None:
    strange = record("6.12", 9, F, F, release="6.12.117", suite="\udcff")
    file = store / "6.12" / "20261107T120000Z" / NAME
    stored(store / os.fsdecode(b"\xff-run"), strange)
    broken = stored(store / os.fsdecode(b"\xff-broken"), strange)
    (broken / NAME).write_text(file.read_text().replace('"a.a"', '"a.\\ud800"'))
    for _ in range(2):
        printed = history("6.12")
        assert "is not the result of a case" in printed.err
        assert "suite \\udcff" in printed.out


def test_self_checks_are_ignored(store: Path, history: History) -> None:
    check = record("model", 1, F, F)
    keep(store, replace(check, head=replace(check.head, self_check=True)))
    assert "model" not in history("a.a").out


def test_another_abi_says_nothing_about_a_release(tmp_path: Path, history: History) -> None:
    keep(
        tmp_path,
        record("6.12", 5, P, release="6.12.117"),
        record("6.12", 7, F, release="6.12.117", profile="6.8"),
        record("image-6.13", 8, P, release="6.13.2-distro", profile="6.13.2"),
    )
    printed = history("a.a").out
    assert printed.endswith("uevt: a.a: PASS from 6.12.117 to 6.13.2-distro\n"), printed


def test_links_are_not_followed(store: Path) -> None:
    (store / "loop").symlink_to(store)
    (store / "elsewhere").symlink_to(os.fspath(store / "6.12"))
    assert len(Store.read(store).runs) == 6
