"""docs/ci.md and docs/ci: commands run, fragments match the examples, the table is correct."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.cli.export import FORMATS
from conformance.cli.main import build_parser, main
from conformance.report.export import github
from conformance.report.export.junit import render_junit
from conformance.report.export.kcidb import Sender, render_kcidb
from conformance.report.export.kselftest import render_kselftest
from conformance.report.export.ktap import render_ktap
from conformance.report.export.tmt import render_tmt
from conformance.results.outcome import OUTCOME_OF, Blame, Outcome, SkipReason
from conformance.results.results_json import write_results
from tests.conftest import tools_testing
from tests.report.samples import case, mixed, run

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "docs" / "ci.md", *sorted((ROOT / "docs" / "ci").glob("*.md"))]
PAGE = "".join(page.read_text(encoding="utf-8") for page in PAGES)
FENCES = re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", PAGE)
LINES = [
    line for kind, text in FENCES if kind == "sh" for line in text.splitlines() if line.strip()
]
COMMANDS = [line for line in LINES if line.startswith("uevt ")]
LIMIT_S = 600
EXAMPLES = {
    "- run: ": "github-actions.yml",
    "script:": "gitlab-ci.yml",
    "parallel:": "gitlab-ci-shards.yml",
    "when: always": "gitlab-ci-shards.yml",
    "Tests:": "autopkgtest/control",
}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the runs that the page names."""
    for name in ("results/6.12/latest", "results/6.1/latest", "uevt-results"):
        (tmp_path / name).mkdir(parents=True)
        write_results(mixed(), tmp_path / name / "results.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(runs: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    program, *words = shlex.split(command)
    assert program == "uevt"
    assert main(words) == 0
    output = capsys.readouterr()
    assert output.err == ""
    if "--out" in words:
        assert (runs / words[words.index("--out") + 1]).stat().st_size
    else:
        assert output.out


def test_example_command_writes_junit(tmp_path: Path) -> None:
    """With the model instead of a kernel; the command of both examples is the same."""
    examples = ("github-actions.yml", "gitlab-ci.yml")
    texts = [(ROOT / "examples/ci" / example).read_text() for example in examples]
    (command,) = {line for text in texts for line in re.findall(r"\.venv/bin/uevt (run .*)", text)}
    words = shlex.split(command.replace("6.12", "model"))
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "uevt", *words, "-k", "status.file_mode"],
        cwd=tmp_path,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0
    assert (tmp_path / "uevt-results" / "junit.xml").is_file()


def test_examples_join_three_machines(tmp_path: Path) -> None:
    """With the model instead of a kernel; the commands of all examples are the same."""
    variables = {"$CI_NODE_INDEX": "{}", "$CI_NODE_TOTAL": "3", "${{ matrix.shard }}": "{}"}
    shards, merges = set(), set()
    for example in ("gitlab-ci-shards.yml", "github-actions-shards.yml"):
        text = (ROOT / "examples/ci" / example).read_text().replace("6.12", "model")
        for name, value in variables.items():
            text = text.replace(name, value)
        shard, merge = re.findall(r"\.venv/bin/uevt (.*)", text)
        shards.add(shard)
        merges.add(merge)
    (shard,), (merge,) = shards, merges
    for line in (*(f"{shard.format(number, number)} -k status." for number in (1, 2, 3)), merge):
        words = [str(ROOT / ".venv" / "bin" / "uevt"), *shlex.split(line)]
        done = subprocess.run(words, cwd=tmp_path, check=False, timeout=LIMIT_S)
        assert done.returncode == 0
    found = json.loads((tmp_path / "uevt-results/results.json").read_text())["summary"]["shards"]
    assert [each["part"] for each in found] == ["1/3", "2/3", "3/3"]


def test_other_commands_name_what_there_is() -> None:
    """They need root, or a lab; tests/install runs the same in a booted system."""
    others = [shlex.split(line, comments=True) for line in LINES if line not in COMMANDS]
    shown = {word for words in others for word in words}
    installed = {word for word in shown if re.match(r"/opt/kselftest/\w", word)}
    assert installed == {"/opt/kselftest/run_kselftest.sh", "/opt/kselftest/uevt/run.sh"}
    assert {"tarball", "install-tests"} <= shown
    for words in others:
        if words[0] == "sudo":
            assert build_parser(words[2:]).parse_args(words[2:]).here
        if words[0].endswith("/run.sh"):
            options = ["run", "--here", *words[1:]]
            assert build_parser(options).parse_args(options)


def test_nipa_runs_the_collection(tmp_path: Path) -> None:
    """By the makefile of the page, in the selftests of a kernel; the collection is a stub."""
    (line,) = [each for each in LINES if each.startswith("printf")]
    tools = tools_testing("6.12")
    place = tmp_path / "linux" / "tools" / "testing" / "selftests"
    shutil.copytree(tools / "selftests" / "kselftest", place / "kselftest")
    for name in ("Makefile", "lib.mk"):
        shutil.copy(tools / "selftests" / name, place)
    for name in ("scripts/subarch.include", "tools/scripts/Makefile.arch"):
        (tmp_path / "linux" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tools.parents[1] / name, tmp_path / "linux" / name)
    (place / "uevt").mkdir()
    (place / "uevt" / "run.sh").write_text("#!/bin/sh\necho KTAP version 1\nexit 4\n")
    (place / "uevt" / "run.sh").chmod(0o755)
    environment = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run(["sh", "-c", line], env=environment, check=True, timeout=LIMIT_S)
    words = ["TARGETS=uevt", "TEST_PROGS=run.sh", "TEST_GEN_PROGS=", "run_tests"]
    made = subprocess.run(
        ["make", "-C", place, *words], capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    assert "# KTAP version 1\nok 1 selftests: uevt: run.sh # SKIP\n" in made.stdout


def test_page_shows_every_form() -> None:
    exports = [words for words in map(shlex.split, COMMANDS) if words[1] == "export"]
    shown = {words[words.index("--format") + 1] for words in exports}
    rows = re.findall(r"(?m)^\| `(\w+)` \| [^|]* \| [^|]* \|$", PAGE)
    assert shown == set(rows) == set(FORMATS)


@pytest.mark.parametrize(("first", "example"), EXAMPLES.items())
def test_fragments_match_the_examples(first: str, example: str) -> None:
    (fragment,) = [text for _, text in FENCES if text.startswith(first)]
    lines = [line.strip() for line in (ROOT / "examples" / "ci" / example).read_text().splitlines()]
    assert {line.strip() for line in fragment.splitlines()} <= set(lines)


def test_lava_fragment_names_an_existing_file() -> None:
    (path,) = re.findall(r"path: (\S+)", PAGE)
    definition = (ROOT / path).read_text()
    (name, value) = re.findall(r"parameters:\n\s+(\w+): (\S+)", PAGE)[0]
    assert f"{name}: {value}\n" in definition


def _cells(outcome: Outcome) -> list[str]:
    """How each form shows an outcome."""
    reason = SkipReason.CONFIG.value if outcome is Outcome.SKIP else ""
    blame = Blame.HOST if outcome is Outcome.ERROR else Blame.KERNEL
    records = [run(case("write.a", outcome, reason=reason, blame=blame), case("write.b"))]
    cells = []
    for text in (render_ktap(records), render_kselftest(records)):
        found = re.search(r"(not ok|ok) 1 write\.a(?: (# \w+))?", text)
        assert found is not None
        cells.append(" ".join(filter(None, found.groups())))
    entry = ElementTree.fromstring(render_junit(records)).find(".//testcase")
    assert entry is not None
    # Every case has its level in system-out.
    cells.append(" ".join(each.tag for each in entry if each.tag != "system-out"))
    tests = json.loads(render_kcidb(records, Sender("mine")))["tests"]
    cells += [each["status"] for each in tests if each["path"] == "user_events.write.a"]
    cells.append(" ".join(line[2:].split(" ")[0] for line in github.annotate(records)))
    results = json.loads(render_tmt(records))
    cells += [each["result"] for each in results if each["name"] == "/write.a"]
    return cells


def test_table_of_outcomes_is_correct() -> None:
    rows = re.findall(r"(?m)^\| ([A-Z]+) \|(.*)\|$", PAGE)
    table = {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}
    weighed = set(OUTCOME_OF.values()) - {Outcome.FAIL}
    assert table == {each.value: _cells(each) for each in Outcome if each not in weighed}
    assert {f"{each.value} that fails the run" for each in weighed} <= {
        name for name, _ in re.findall(r"(?m)^\| ([\w ]+) \|(.*)\|$", PAGE)
    }
