"""The documentation names commands, targets, files and keys that exist."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest

from conformance.cli.main import build_parser
from conformance.cli.reference import FILE, render
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.results.outcome import Blame, Outcome
from conformance.results.summary import Summary
from kernels.catalog.catalog import load_catalog
from tests.test_architecture import FLOORS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.glob("*.md")),
    *sorted((DOCS / "ci").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
# Paths in prose that start at the root of the repository.
TOP = ("conformance/", "docs/", "examples/", "fixtures/", "host/", "kernels/", "tests/", "vm/")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose_of(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"(?ms)^```.*?^```$", "", text_of(page))


def commands_of(page: Path) -> list[str]:
    """Command lines in shell blocks, and `uevt …` in prose that names a subcommand."""
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```$", text_of(page))
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    inline = re.findall(r"`(uevt [a-z]+ [^`]+)`", prose_of(page))
    commands = [line.removeprefix(".venv/bin/") for line in (*lines, *inline)]
    return [line.replace(r"\|", "|") for line in commands if line.startswith("uevt ")]


def usage_lines() -> set[str]:
    """The usage lines of docs/cli.md, which are no commands."""
    return set(re.findall(r"(?m)^`(uevt [^`]*)`$", text_of(FILE)))


COMMANDS = sorted({line for page in PAGES for line in commands_of(page)} - usage_lines())


@pytest.mark.parametrize("command", COMMANDS)
def test_command_lines_parse(command: str) -> None:
    # A pipe in quotes belongs to the command.
    words = list(itertools.takewhile(lambda word: word not in "|>", shlex.split(command)))[1:]
    assert build_parser(words).parse_args(words)


@each_page
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor:
            heads = re.findall(r"(?m)^#+ (.+)$", text_of(target))
            assert anchor in {re.sub(r"[^\w\- ]", "", h).lower().replace(" ", "-") for h in heads}


@each_page
def test_paths_exist(page: Path) -> None:
    words = re.findall(r"`([\w./*-]+)`", prose_of(page))
    paths = [w for w in words if w.startswith(TOP)]
    placeholders = ("NAME", "HAZARD")
    real = [path for path in paths if not any(word in path for word in placeholders)]
    assert [path for path in real if not list(ROOT.glob(path))] == []


@each_page
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    named = re.findall(r"`make ([a-z-]+)[^`]*`", prose_of(page))
    named += re.findall(r"(?m)^make ([a-z-]+)", text_of(page))
    assert set(named) - {"olddefconfig"} <= targets


def test_failure_in_readme_names_its_case() -> None:
    text = text_of(ROOT / "README.md")
    ((id, file, line),) = re.findall(r"(?ms)^CHANGED (\S+) .*?^  case +(\S+):(\d+)$", text)
    source = (ROOT / file).read_text(encoding="utf-8")
    assert f"def test_{id.partition('.')[2]}(" in source
    assert "unregister(" in source.splitlines()[int(line) - 1]


def test_readme_is_short() -> None:
    assert len(text_of(ROOT / "README.md").splitlines()) <= 120
    assert len(text_of(ROOT / "CONTRIBUTING.md").splitlines()) <= 100
    assert "docs/findings.md" in text_of(ROOT / "README.md")[:1200]


def test_every_page_is_linked_from_readme() -> None:
    readme = text_of(ROOT / "README.md")
    assert [page.name for page in DOCS.glob("*.md") if f"docs/{page.name}" not in readme] == []


def test_command_reference_is_current() -> None:
    assert text_of(FILE) == render(), "run make docs"


def test_architecture_names_every_room_on_its_floor() -> None:
    (picture,) = re.findall(r"(?ms)^```\n(8  .*?)^```$", text_of(DOCS / "architecture.md"))
    found: dict[int, set[str]] = {}
    floor = 0
    for line in picture.splitlines():
        floor = int(line[0]) if line[0] != " " else floor
        found.setdefault(floor, set()).add(line[3:].split()[0])
    assert found == {number: set(rooms) for number, rooms in enumerate(FLOORS, 1)}


def test_older_results_are_counted_and_explained() -> None:
    text = text_of(DOCS / "kernels.md")
    numbers = re.findall(r"(\d,\d{3})(?: variants)?\s\(([\d.]+)\)", text)
    stated = {kernel: number for number, kernel in numbers}
    files = {path.stem: Summary.read(path).cases for path in (DOCS / "results").glob("*.json")}
    renewed = {entry.kernel_id for entry in load_catalog().default()}
    older = {name for name in files if name[0].isdigit()} - renewed
    assert stated == {name: f"{len(files[name]):,}" for name in older}
    noted = {id for cases in files.values() for id in cases if cases[id].outcome == "NOTE"}
    assert {id for id in noted if f"`{id}`" not in text} == set()


def test_every_outcome_and_blame_is_explained() -> None:
    rows = re.findall(r"(?m)^\| (\w+) \|", text_of(DOCS / "reports.md"))
    assert {outcome.value for outcome in Outcome} <= set(rows)
    assert {blame.value for blame in Blame} - {"none"} <= set(rows)


def test_exit_codes_are_those_of_the_code() -> None:
    table = text_of(DOCS / "running.md").split("## Exit codes", 1)[1]
    rows = re.findall(r"(?m)^\| ([^|]+) \|(.*)\|$", table)[1:]
    found = {name: [int(cell.split(";")[0]) for cell in cells.split("|")] for name, cells in rows}
    endings = (
        *("PASS", "UNEXPECTED", "NOT_BUILT", "USAGE", "NOT_APPLICABLE", "SKIPPED"),
        *("HOST", "BUILD_FAILED", "INTERRUPTED"),
    )
    assert {Ending[ending] for ending in endings} == set(Ending)
    codes = [[exit_code(Ending[ending], style) for style in ExitStyle] for ending in endings]
    assert list(found.values()) == codes
