"""Output for GitHub Actions, parsed as its runner does."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conformance.report.export import github
from conformance.report.export.ktap_stream import KtapStream
from conformance.report.terminal.progress import Live
from conformance.results.case_result import Evidence
from conformance.results.outcome import Outcome
from conformance.results.run import RunRecord
from conformance.session.controller.outputs import WorkflowOutput
from tests.report.samples import UNHURRIED, case, head, many_causes, mixed, run, runs, wrong


def read(line: str) -> tuple[str, str, str]:
    """Parse a workflow command into kind, title and message."""
    _, command, data = line.split("::", 2)
    kind, _, properties = command.partition(" ")
    (title,) = [each.removeprefix("title=") for each in properties.split(",")]
    return kind, plain(title, ":,"), plain(data)


def plain(text: str, marks: str = "") -> str:
    for mark in (*marks, "\r", "\n", "%"):
        text = text.replace(f"%{ord(mark):02X}", mark)
    return text


@UNHURRIED
@given(runs())
def test_each_failure_and_deviation_is_one_line(record: RunRecord) -> None:
    lines = github.annotate([record])
    assert not any(set("\r\n") & set(line) for line in lines)
    bad = [each.id for each in record.cases if record.head.fails(each.outcome)]
    titles = {
        kind: [title.split(" ")[1] for of, title, _ in map(read, lines) if of == kind]
        for kind in ("error", "warning", "notice")
    }
    assert titles["error"] == bad + ["uevt.run"] * bool(record.trouble)
    for kind, outcome in (("warning", Outcome.CHANGED), ("notice", Outcome.NOTE)):
        weak = [each.id for each in record.cases if each.outcome is outcome]
        assert titles[kind] == ([] if record.head.fails(outcome) else weak)


@pytest.mark.parametrize("reason", ["50% of a:b, ::error:: and %0A", "%" * 5000])
def test_messages_are_escaped_and_bounded(reason: str) -> None:
    (line,) = github.annotate([run(case("write.a", Outcome.CRASH, reason=reason))])
    assert read(line) == ("error", "CRASH write.a on 6.12", reason[:4096])


def test_annotations_have_reason_and_differences() -> None:
    messages = {read(line)[1]: read(line)[2] for line in github.annotate([mixed()])}
    assert list(messages) == [
        "FAIL registration.size_short on 6.12",
        "CRASH delete.busy on 6.12",
        "TIMEOUT write.storm on 6.12",
        "ERROR lifetime.fork on 6.12",
        "CHANGED grammar.order on 6.12",
        "NOTE filters.caret on 6.12",
    ]
    lines = messages["FAIL registration.size_short on 6.12"].splitlines()
    assert lines[0] == "a structure of four bytes is accepted"
    assert lines[1] == "step 4, errno: allowed EINVAL, observed success"
    assert "a second run on a new guest gave PASS" in messages["CRASH delete.busy on 6.12"]


@pytest.mark.parametrize(
    ("bad", "most", "shown", "left_out"), [(10, 10, 10, 0), (11, 10, 10, 2), (3, 1, 1, 3)]
)
def test_omitted_errors_are_counted(bad: int, most: int, shown: int, left_out: int) -> None:
    record = run(*(case(f"write.c{number}", Outcome.FAIL) for number in range(bad)))
    lines = github.annotate([record], most)
    assert len(lines) == shown
    last = f"{left_out} more results" if left_out else f"FAIL write.c{bad - 1} on 6.12"
    assert read(lines[-1])[1] == last


def test_require_makes_not_built_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    WorkflowOutput(require=True).end(run(not_built=True))
    assert read(capsys.readouterr().out.rstrip("\n")) == (
        *("error", "NOT_BUILT 6.12", "the kernel was built without user_events"),
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("    ::stop-commands::x\n::add-mask::y", "    \\x3a:stop-commands::x\n\\x3a:add-mask::y"),
        ("[1.0] ##[error]x ###[a]", "[1.0] \\x23#[error]x #\\x23#[a]"),
        ("a::b: c\n\n: x\n## y\n", "a::b: c\n\n: x\n## y\n"),
    ],
)
def test_kernel_output_is_not_a_command(text: str, printed: str) -> None:
    assert github.harmless(text) == printed


@given(st.text(alphabet=":#[ \t\nab", max_size=40))
def test_harmless_text_has_no_command(text: str) -> None:
    for line in github.harmless(text).split("\n"):
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


@pytest.mark.parametrize(("runs_", "each"), [(1, 10), (3, 3), (20, 1)])
def test_runs_of_one_step_share_the_annotations(runs_: int, each: int) -> None:
    environment: dict[str, str] = {}
    assert github.shared(environment) == 10
    github.share(environment, runs_)
    assert github.shared(environment) == each


class Elements(HTMLParser):
    """The elements, after checking that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert not attrs
        assert tag in {"h3", "p", "b", "details", "summary", "code", "pre"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        # Text outside of elements would be Markdown.
        assert self.open or not data.strip()
        self.texts.append(data)


def texts(markdown: str) -> str:
    reader = Elements()
    reader.feed(markdown)
    reader.close()
    assert reader.open == []
    return "".join(reader.texts)


@UNHURRIED
@given(runs())
def test_all_text_is_inside_elements(record: RunRecord) -> None:
    markdown = github.render_summary(record)
    output = texts(markdown)
    for each in record.cases:
        assert each.outcome in {Outcome.PASS, Outcome.SKIP} or each.id in output
    # An empty line ends an element, except a <pre> that begins a line.
    for block in re.split(r"(?ms)^<pre>.*?^</pre>$", markdown):
        for part in block.split("\n\n"):
            assert part.strip("\n").count("\n") == 0


def test_kernel_output_is_not_markup() -> None:
    text = "</pre></details><script>alert(1)</script>\n\n# x\n```\n[a](b) @you"
    record = run(
        case("write.a", Outcome.CRASH, reason=text, evidence=Evidence(console=text)),
        case("write.b", Outcome.XFAIL, reason=text),
        selected=3,
        note=text,
    )
    assert texts(github.render_summary(record)).count("<script>") == 5


def many(count: int) -> RunRecord:
    console = "\n".join(f"é{'x' * 90}" for _ in range(48))
    evidence = Evidence(console=console)
    return run(*(replace(each, evidence=evidence) for each in many_causes()[:count]))


@pytest.mark.parametrize("room", [500, 5000, 100_000, 1 << 20])
def test_a_summary_fits_its_room(room: int) -> None:
    record = many(300)
    markdown = github.render_summary(record, room)
    assert room - 6000 < len(markdown.encode()) <= room
    shown = len(re.findall("<details>", markdown))
    assert f"{300 - shown} more left out: see results.json." in texts(markdown)


def test_failures_of_one_cause_are_one_section() -> None:
    summary = texts(github.render_summary(run(wrong("write.a"), wrong("write.b"))))
    assert summary.count("write.a: step 2, errno") == 1
    assert "the same difference as write.a in 1 more case: write.b" in summary


def test_summaries_are_appended(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("# mine\n")
    assert github.append_summary(file, [mixed(), run(case("write.a"))]) == []
    output = file.read_text()
    assert output.startswith("# mine\n<h3>uevt: 6.12 (6.12.117) FAIL: ")
    assert output.count("<h3>") == 2


def test_a_full_file_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_bytes(b"x" * ((1 << 20) - 20))
    record = mixed()
    assert github.append_summary(file, [record]) == [record]
    assert file.stat().st_size == (1 << 20) - 20


def test_many_runs_stay_below_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    github.append_summary(file, [many(230)] * 3)
    assert (1 << 20) - 20000 < file.stat().st_size <= 1 << 20
    assert file.read_text().count("more left out") == 2


def test_a_run_annotates_and_adds_its_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    monkeypatch.setenv("UEVT_ANNOTATIONS", "2")
    workflow = WorkflowOutput()
    workflow.begin(9)
    workflow.case(case("write.a", Outcome.FAIL))
    workflow.end(mixed())
    lines = capsys.readouterr().out.splitlines()
    assert [read(line)[1] for line in lines] == [
        "FAIL registration.size_short on 6.12",
        "3 more results",
        "CHANGED grammar.order on 6.12",
        "NOTE filters.caret on 6.12",
    ]
    assert file.read_text() == github.render_summary(mixed())


@pytest.mark.parametrize("path", [None, "", "/nowhere/summary.md", "full"])
def test_an_unwritable_summary_does_not_end_the_run(
    path: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "full").write_bytes(b"x" * (1 << 20))
    monkeypatch.chdir(tmp_path)
    if path is not None:
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", path)
    WorkflowOutput().end(mixed())
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 6
    assert output.err.startswith("uevt: no summary of the step: ") is bool(path)


def test_a_run_without_a_result_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    WorkflowOutput().end(None)
    assert capsys.readouterr().out == ""


def test_live_output_has_no_commands() -> None:
    console = "::stop-commands::x\n[1.0] ##[add-mask]y"
    crash = case("write.a", Outcome.CRASH, evidence=Evidence(console=console))
    screen, ktap = io.StringIO(), io.StringIO()
    live = Live(screen, head(), Path("out"), escape=github.harmless)
    live.case(crash)
    KtapStream(ktap, head(), escape=github.harmless).case(crash)
    for output in (screen.getvalue(), ktap.getvalue()):
        assert "stop-commands" in output
        assert "##[" not in output
        assert not re.search(r"(?m)^\s*::", output)
