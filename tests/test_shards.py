"""`uevt run --shard` and `uevt merge`: several machines, one run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conformance.results.replay import read_journal
from kernels.store.built_kernel import BuiltKernel
from tests.conftest import Uevt
from tests.enclosure import Runs
from tests.results.test_schema import WRITTEN

FEW = ("-k", "status. or dated.b", "--quiet")
MODEL = ("--kernel=model", *FEW)
SHARDS = 3


def digests(directory: Path) -> dict[str, tuple[str, str]]:
    """Outcome and program by case."""
    found = results(directory)["cases"]
    assert len({case["id"] for case in found}) == len(found)
    return {case["id"]: (case["outcome"], case["digest"]) for case in found}


def results(directory: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((directory / "results.json").read_text())
    WRITTEN.validate(read)
    return read


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A local run, and its shards on machines that remember other durations."""
    directory = tmp_path_factory.mktemp("shards")
    place = Runs(directory, "model")
    assert place.run(*MODEL, f"--out={directory}/local") == (0, "")
    for number in range(1, SHARDS + 1):
        remembered = place.cache / "durations" / "model.json"
        remembered.write_text(json.dumps({"status.file_mode": 100.0 * number}))
        out = directory / "parts" / str(number)
        assert place.run(*MODEL, f"--shard={number}/{SHARDS}", f"--out={out}") == (0, "")
    return place


@pytest.fixture
def parts(place: Runs, tmp_path: Path) -> Path:
    """A directory of the shards 1, 2 and 3."""
    return shutil.copytree(place.directory / "parts", tmp_path / "parts")


def test_merged_run_equals_a_local_one(uevt: Uevt, place: Runs, parts: Path) -> None:
    out, local = parts.parent / "merged", place.directory / "local"
    printed = uevt("merge", parts, "--out", out).out
    assert printed.endswith("self-check ok: 17 cases\n")
    assert digests(out) == digests(local)
    ours, theirs = results(out)["summary"], results(local)["summary"]
    shards = ours.pop("shards")
    assert {**ours, "duration_s": 0} == {**theirs, "duration_s": 0}
    assert [each["part"] for each in shards] == ["1/3", "2/3", "3/3"]
    assert sorted(id for each in shards for id in each["cases"]) == sorted(digests(local))
    assert results(out)["asked"] == results(local)["asked"]
    for name in ("junit.xml", "results.ktap", "report.html"):
        assert "status.totals.one_idle" in (out / name).read_text()
    assert read_journal(out / "journal.jsonl").complete


def test_merged_run_can_be_resumed(uevt: Uevt, place: Runs, parts: Path) -> None:
    """A shard that was cut off leaves cases for --resume."""
    cut = json.loads((parts / "2" / "results.json").read_text())
    gone = cut["cases"].pop()
    cut["summary"]["self_check"] = "failed"
    cut["summary"]["note"] = "interrupted"
    (parts / "2" / "results.json").write_text(json.dumps(cut))
    out = parts.parent / "merged"
    printed = uevt("merge", parts, "--out", out, code=3).out
    assert "16 of 17 cases ended: shard 2/3: interrupted" in printed
    assert gone["id"] not in digests(out)
    assert place.run(f"--resume={out}")[0] == 0
    assert digests(out) == digests(place.directory / "local")
    assert len(results(out)["summary"]["shards"]) == SHARDS


def refused(uevt: Uevt, *places: Path) -> str:
    """The message of a merge that is refused."""
    return uevt("merge", *places, "--out", places[0] / "merged", code=2).err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("1", "3"), "missing 2/3"),
        (("1",), "missing 2/3, 3/3"),
        (("1", "2", "3", "2"), "shard 2/3 is given twice"),
        (("1", "2", "../local"), "is no shard"),
    ],
)
def test_other_shards_are_refused(
    uevt: Uevt, place: Runs, parts: Path, given: tuple[str, ...], message: str
) -> None:
    shutil.copytree(place.directory / "local", parts.parent / "local")
    assert message in refused(uevt, *(parts / name for name in given))
    assert not (parts / given[0] / "merged").exists()


def edit(directory: Path, *keys: Any) -> None:
    """Set a value in results.json: the last of ``keys``."""
    file = directory / "results.json"
    read = json.loads(file.read_text())
    inner = read
    for key in keys[:-2]:
        inner = inner[key]
    inner[keys[-2]] = keys[-1]
    file.write_text(json.dumps(read))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (("kernel", "build", "0" * 64), "kernel build was"),
        (("suite_sha256", "0" * 64), "has been edited"),
        (("asked", ["--kernel=model", "--shard=2/3", "--require"]), "-k was"),
        (("summary", "shards", 0, "sha256", "0" * 64), "selection was"),
    ],
)
def test_shards_of_another_run_are_refused(
    uevt: Uevt, parts: Path, keys: tuple[Any, ...], message: str
) -> None:
    edit(parts / "2", *keys)
    assert message in refused(uevt, parts)


def test_overlapping_shards_are_refused(uevt: Uevt, parts: Path) -> None:
    (first,) = results(parts / "1")["summary"]["shards"]
    edit(parts / "2", "summary", "shards", [{**first, "part": "1/2"}])
    assert "shard 1/2 has cases of shard 1/3" in refused(uevt, parts)


def test_no_shard_is_replaced_by_the_merged_run(uevt: Uevt, parts: Path) -> None:
    """Its console and its programs are nowhere else."""
    shard = next(parts.iterdir())
    before = {file: file.read_bytes() for file in shard.iterdir()}
    refused = uevt("merge", parts, "--out", shard, "--force", code=2).err
    assert "has one of the shards; name another --out" in refused
    assert {file: file.read_bytes() for file in shard.iterdir()} == before


def test_more_shards_than_cases_are_refused(tmp_path: Path) -> None:
    place = Runs(tmp_path, "model")
    code, error = place.run("--kernel=model", "-k=status.file_mode", "--shard=1/2")
    assert (code, "the selection has 1 case for 2 shards" in error) == (2, True)
    code, error = place.run("--kernel=model", "--shard=3/2")
    assert (code, "'3/2' is no shard" in error) == (2, True)


def test_shards_of_a_kernel_equal_a_local_run(
    uevt: Uevt, built_kernel: BuiltKernel, tmp_path: Path
) -> None:
    """The switch of a case is probed in the other shard as well."""
    place = Runs(tmp_path, built_kernel.kernel_id)
    few = (f"--kernel={built_kernel.kernel_id}", *FEW, "--guests=1")
    for number in (1, 2):
        code = place.run(*few, f"--shard={number}/2", f"--out={tmp_path}/parts/{number}")
        assert code == (0, "")
    assert place.run(*few, f"--out={tmp_path}/local") == (0, "")
    uevt("merge", tmp_path / "parts", "--out", tmp_path / "merged")
    assert digests(tmp_path / "merged") == digests(tmp_path / "local")
    assert results(tmp_path / "merged")["summary"]["verdict"] == "PASS"
    assert place.left() == []
