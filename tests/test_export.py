"""`uevt export`: refusals, output files, and a real regression in each format.

fixtures/report/ebusy.json is of 6.12 with one changed line: user_events_write returns EBUSY
instead of EBADF for an event that is not enabled.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from kcidb_io.schema import V5_3

from tests.conftest import Uevt
from tests.report.export.ktap_reader import read_ktap
from tests.report.samples import case, head, mixed, run, stored

RECORDED = Path(__file__).resolve().parent.parent / "fixtures" / "report" / "ebusy.json"
REGRESSION = "dated.ebadf_when_disabled"
Export = Callable[..., str]


@pytest.fixture
def patched(tmp_path: Path) -> Path:
    """The results of the changed kernel."""
    directory = tmp_path / "6.12+pEBUSY"
    directory.mkdir()
    shutil.copy(RECORDED, directory / "results.json")
    return directory


@pytest.fixture
def export(uevt: Uevt) -> Export:
    """Print runs in a format; standard error if the exit code is not 0."""

    def printed(form: str, *more: object, code: int = 0) -> str:
        sender = ["--origin=mine"] if form == "kcidb" else []
        output = uevt("export", f"--format={form}", *sender, *more, code=code)
        return output.err if code else output.out

    return printed


@pytest.fixture
def refused(uevt: Uevt) -> Export:
    """The message about invalid arguments, which exit with a usage error."""

    def message(*arguments: object) -> str:
        printed = uevt("export", *arguments, code=2)
        assert printed.out == ""
        assert printed.err.startswith(("uevt: ", "uevt export: "))
        return printed.err

    return message


def test_invalid_arguments_are_refused(
    export: Export, refused: Export, patched: Path, tmp_path: Path
) -> None:
    nowhere = tmp_path / "nowhere"
    assert "does not exist" in refused(nowhere, "--format=ktap")
    assert "has no results.json" in refused(Path(__file__).parent, "--format=ktap")
    assert "invalid choice" in refused(patched, "--format=html")
    assert "--format" in refused(patched)
    assert "is named twice" in refused(patched, tmp_path, "--format=ktap")
    unwritable = refused(patched, "--format=junit", f"--out={nowhere}/x")
    assert "cannot be written: No such file or directory; name another --out" in unwritable
    assert "cannot be written" in refused(patched, "--format=ktap", f"--out={tmp_path}")
    # The annotations were printed before.
    assert "cannot be written" in export("github", patched, f"--out={tmp_path}", code=2)


def test_an_invalid_document_is_refused(refused: Export, patched: Path) -> None:
    file = patched / "results.json"
    file.write_text(file.read_text()[:-100])
    assert f"{file}: is not JSON" in refused(patched, "--format=ktap")
    file.write_text("{}")
    assert "has no schema, and this uevt reads schema 1" in refused(patched, "--format=ktap")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "--origin: is missing; name your CI system"),
        (["--origin=Ä"], "--origin: 'Ä' is not a name"),
        (["--origin=a\n"], "is not a name"),
        (["--origin=a", "--files=here"], "--files: 'here' is not a URL"),
        (["--origin=a", "--files=https://[x"], "is not a URL"),
        (["--origin=a", "--build=x"], "--build: 'x' is not an id; write it as ORIGIN:REST"),
    ],
)
def test_invalid_kcidb_options_are_refused(
    refused: Export, patched: Path, given: list[str], message: str
) -> None:
    assert message in refused("--format=kcidb", *given, patched)


def test_a_build_belongs_to_one_run(
    uevt: Uevt, refused: Export, patched: Path, tmp_path: Path
) -> None:
    stored(tmp_path, mixed())
    given = ("--format=kcidb", "--origin=a", "--build=other:1")
    assert "--build: belongs to one run" in refused(*given, patched, tmp_path)
    tests = json.loads(uevt("export", *given, patched).out)["tests"]
    assert {each["build_id"] for each in tests} == {"other:1"}


def test_kcidb_options_are_refused_for_other_formats(refused: Export, patched: Path) -> None:
    message = refused(patched, "--format=junit", "--origin=a")
    assert "--origin: is not an option of junit" in message


def test_a_self_check_is_refused_for_kcidb(export: Export, refused: Export, tmp_path: Path) -> None:
    stored(tmp_path, run(case("write.a"), head=head(self_check=True)))
    message = refused(tmp_path, "--format=kcidb", "--origin=a")
    assert "is a self-check, which judged no kernel; name another run" in message
    assert "ok 1 write.a" in export("ktap", tmp_path)


@pytest.mark.parametrize("form", ["ktap", "kselftest", "junit", "kcidb"])
def test_a_file_gets_the_printed_text(
    export: Export, patched: Path, tmp_path: Path, form: str
) -> None:
    printed = export(form, patched)
    file = tmp_path / "file"
    file.write_text("of old\n")
    assert export(form, patched, "--out", file) == ""
    assert file.read_text() == printed
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(["file", patched.name])


@pytest.mark.parametrize(
    ("form", "begins"), [("ktap", "KTAP version 1\n"), ("github", "<h3>uevt: 6.12+pEBUSY")]
)
def test_a_pipe_is_not_replaced(
    export: Export, patched: Path, tmp_path: Path, form: str, begins: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    message: list[str] = []
    reader = threading.Thread(target=lambda: message.append(pipe.read_text()), daemon=True)
    reader.start()
    export(form, patched, "--out", pipe)
    reader.join(10)
    assert message[0].startswith(begins)
    assert pipe.is_fifo()


@pytest.mark.parametrize("form", ["ktap", "github"])
def test_a_full_disk_is_an_error_of_the_host(export: Export, patched: Path, form: str) -> None:
    assert "No space left on device" in export(form, patched, "--out", "/dev/full", code=3)


def test_a_link_stays_one(export: Export, patched: Path, tmp_path: Path) -> None:
    # /dev/stdout is a link, with redirected output to a regular file.
    link, file = tmp_path / "link", tmp_path / "file"
    file.write_text("of old\n")
    link.symlink_to(file)
    export("ktap", patched, "--out", link)
    assert link.is_symlink()
    assert file.read_text().startswith("KTAP version 1\n")


def test_several_runs_are_one_document(export: Export, patched: Path, tmp_path: Path) -> None:
    runs = (stored(tmp_path / "6.12", mixed()), patched)
    names = [each.name for each in read_ktap(export("ktap", *runs)).subtests]
    assert names == ["6.12", "6.12+pEBUSY"]


def test_kcidb_shows_the_regression(export: Export, patched: Path) -> None:
    data = json.loads(export("kcidb", patched))
    V5_3.validate_exactly(data)
    known = {each["test_id"] for each in data["incidents"] if each["present"]}
    bad = {each["path"] for each in data["tests"] if each["status"] != "PASS"}
    assert bad == {*("user_events", f"user_events.{REGRESSION}", "user_events.format.array_length")}
    new = {each["path"] for each in data["tests"] if each["status"] == "FAIL"} - {"user_events"}
    news = [each for each in data["tests"] if each["path"] in new and each["id"] not in known]
    assert [each["path"] for each in news] == [f"user_events.{REGRESSION}"]
    assert news[0]["misc"]["uevt"]["mismatches"] == [
        {"step": 11, "field": "errno", "allowed": "EBADF", "observed": "EBUSY"}
    ]


def test_github_shows_the_regression(export: Export, patched: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    message = export("github", patched, "--out", summary)
    assert message == (
        f"::error title=FAIL {REGRESSION} on 6.12+pEBUSY::"
        "step 11, errno: allowed EBADF, observed EBUSY\n"
    )
    assert summary.read_text().count("<details>") == 2
    assert f"FAIL <code>{REGRESSION}</code>" in summary.read_text()


def test_the_step_summary_is_written_where_github_says(
    uevt: Uevt, patched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("export", "--format=github", patched)
    assert uevt(*words).err == "uevt: no summary: set --out or GITHUB_STEP_SUMMARY\n"
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    uevt(*words)
    assert summary.read_text().startswith("<h3>uevt: 6.12+pEBUSY (6.12.117) FAIL: ")
    summary.write_bytes(b"x" * (1 << 20))
    assert "the summary of 6.12+pEBUSY does not fit" in uevt(*words).err
