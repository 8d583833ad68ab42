"""A run that did not judge all of its cases never passes: docs/reliability.md lists how."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.cli.main import build_parser
from conformance.results import journal
from conformance.results.errors import ReportError
from conformance.results.outcome import Outcome, RunVerdict
from conformance.results.results_json import NAME, read_results, write_results
from conformance.results.run import RunRecord
from conformance.session import launch
from conformance.session.controller.recorder import Recorder
from conformance.session.target.target import Target
from tests.commands import ended, outcomes, results, uevt
from tests.enclosure import ROOT, UEVT
from tests.report.samples import case, run

DRILLS = Path(__file__).parent / "drills"
PATIENCE = 300
ONE = ("--kernel", "model", "-k", "unregister.twice")
PYTEST = (sys.executable, "-m", "pytest")

# Plugins that interfere with a run, by what they do.
MEDDLERS = {
    "does nothing": "",
    "takes a case away": """
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(items):
            del items[-1]
    """,
    "runs a case itself": """
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_protocol(item):
            return True if item.name == "test_second" else (yield)
    """,
    "keeps a result back": """
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(item):
            if item.name == "test_second":
                item.config.pluginmanager.unregister(name="uevt-controller")
            return (yield)
    """,
    "ends the session": """
        def pytest_runtest_logfinish(nodeid):
            pytest.exit("enough", 0)
    """,
}
# What happens to a run from outside, and its exit code.
MISHAPS = {
    "Ctrl-C before the session": ("raise KeyboardInterrupt", 130),
    "Ctrl-C before the first case": (
        """
        def pytest_sessionstart():
            raise KeyboardInterrupt
        """,
        130,
    ),
    "Ctrl-C after the last case": (
        """
        @pytest.hookimpl(tryfirst=True)
        def pytest_unconfigure():
            raise KeyboardInterrupt
        """,
        130,
    ),
    "a full disk below the output": (
        """
        def pytest_unconfigure():
            raise OSError(28, "No space left on device")
        """,
        3,
    ),
    "a warning of Python": (
        """
        def pytest_runtest_logfinish(nodeid):
            open("/dev/null")
        """,
        0,
    ),
}


def drill(out: Path, name: str, *options: str, code: int = 0, **environment: str) -> str:
    """Run the cases of a drill on the model, and check the exit code; the output."""
    words = [*PYTEST, str(DRILLS / name), "--kernel=model", "-q", *options]
    done = ended([*words, f"--out={out}"], code, **environment)
    return done.stdout + done.stderr


# pytest and Python


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("", 0),
        ("-p no:uevt-controller", 2),
        ("-p no:uevt-running", 2),
        ("-p no:uevt-selecting", 2),
        ("-p no:uevt", 4),
        ("--setup-only", 3),
        ("--deselect tests/drills/two_passes.py::test_second", 3),
    ],
)
def test_pytest_options_that_deselect_cases_fail_the_run(
    tmp_path: Path, options: str, code: int
) -> None:
    drill(tmp_path, "two_passes.py", *options.split(), code=code)


def meddled(tmp_path: Path, name: str, plugin: str) -> int:
    """The exit code of a session started like `uevt run` does, on a drill, with a plugin."""
    (tmp_path / "meddler.py").write_text("import pytest\n" + plugin.replace("\n        ", "\n"))
    options = build_parser().parse_args(["run", "--kernel=model"])
    words = launch._words(options, "model", str(tmp_path / "out"))
    # Cases run in the process that the plugin meddles with, as with --here.
    words = [word for word in words if not word.startswith("--most-guests=")]
    words[words.index("conformance/cases")] = str(DRILLS / name)
    environment = {**launch._environment(), "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, *launch._SESSION, *words, "-p", "meddler"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    ).returncode


@pytest.mark.parametrize("what", MEDDLERS)
def test_meddling_plugin_fails_the_run(tmp_path: Path, what: str) -> None:
    code = 0 if what == "does nothing" else 3
    assert meddled(tmp_path, "two_passes.py", MEDDLERS[what]) == code


@pytest.mark.parametrize("what", MISHAPS)
def test_mishap_is_no_fail(tmp_path: Path, what: str) -> None:
    plugin, code = MISHAPS[what]
    assert meddled(tmp_path, "two_passes.py", plugin) == code


@pytest.mark.parametrize("words", [("run", "--kernel=model", "-k=absent"), ("compare", "a", "b")])
def test_closed_errors_are_no_fail(words: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*UEVT, *words], cwd=ROOT, env=environment, stderr=write, timeout=PATIENCE
    )
    os.close(write)
    assert done.returncode == 2


def test_changed_exit_code_is_restored(tmp_path: Path) -> None:
    """The exit code of the session is that of the verdict, whatever that of pytest is."""
    plugin = """
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_sessionfinish(session):
            yield
            session.exitstatus = 0
    """
    assert meddled(tmp_path, "nothing_done.py", plugin) == 3


def test_ignored_case_file_fails_the_run(tmp_path: Path) -> None:
    ignored = "--ignore=conformance/cases/write/test_write.py"
    ended([*PYTEST, "conformance", *ONE, "-q", ignored, f"--out={tmp_path}"], 3)
    assert "not collected: test_write.py" in results(tmp_path)["summary"]["note"]


def test_pytest_variables_of_the_environment_are_ignored(tmp_path: Path) -> None:
    meddling = {
        "PYTEST_ADDOPTS": "--deselect conformance/cases/unregister/test_word.py --setup-only"
        " -x --help",
        "PYTEST_PLUGINS": "no_such_plugin",
        "PYTHONOPTIMIZE": "1",
    }
    uevt("run", *ONE, "--out", tmp_path, code=0, **meddling)
    assert outcomes(tmp_path) == {"unregister.twice": "PASS"}


def test_session_that_judges_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import pytest\npytest.main = lambda *_, **__: 0\n")
    paths = f"{tmp_path}{os.pathsep}{ROOT}"
    words = ("run", *ONE, "--exit-style=bisect", "--out", tmp_path / "out")
    done = uevt(*words, code=129, PYTHONPATH=paths)
    assert "nothing was judged" in done.stderr


def test_python_without_assertions(tmp_path: Path) -> None:
    words = [sys.executable, "-O", "-m", "pytest", str(DRILLS / "two_passes.py"), "-W", "default"]
    done = ended([*words, "--kernel=model", f"--out={tmp_path / 'out'}"], 2)
    assert "assertions" in done.stderr


def test_installed_plugins_are_not_loaded() -> None:
    assert launch._environment()["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] == "1"


# Cases and workers


def test_case_without_operations_does_not_pass(tmp_path: Path) -> None:
    drill(tmp_path, "nothing_done.py", code=3)
    assert outcomes(tmp_path) == {"drill.nothing": "ERROR"}


def test_death_of_the_process_is_no_pass(tmp_path: Path) -> None:
    drill(tmp_path, "killed_worker.py", "--guests", "2", code=3)
    assert outcomes(tmp_path) == {"drill.first": "PASS", "drill.dies": "ERROR"}


@pytest.mark.parametrize("guests", ["1", "2"])
def test_stopping_at_the_first_failure_is_no_pass(tmp_path: Path, guests: str) -> None:
    both = (str(DRILLS / "two_passes.py"), "-x", "--guests", guests)
    drill(tmp_path, "nothing_done.py", *both, code=3)


@pytest.mark.parametrize("words", [("kernels", "list"), ("compare", "{0}", "{0}")])
def test_closed_output_is_no_success(tmp_path: Path, words: tuple[str, ...]) -> None:
    write_results(run(case("drill.first")), tmp_path / NAME)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*UEVT, *(word.format(tmp_path) for word in words)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=write,
        timeout=PATIENCE,
        check=False,
    )
    os.close(write)
    assert done.returncode == 141


# Files of a run


def recorded(tmp_path: Path, spoil: Callable[[Path], None], note: str = "") -> RunRecord:
    """A run of two cases whose journal is damaged before it ends."""
    recorder = Recorder(Target("model", "6.12"), tmp_path)
    for name in ("drill.first", "drill.second"):
        recorder.case(case(name))
    spoil(tmp_path / journal.NAME)
    return recorder.finish(2, note)


def test_complete_journal_is_a_pass(tmp_path: Path) -> None:
    assert recorded(tmp_path, lambda file: None).verdict is RunVerdict.PASS


def _lose_a_line(file: Path) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "drill.first" not in line))


def _change_a_result(file: Path) -> None:
    file.write_text(file.read_text().replace("PASS", "FAIL", 1))


@pytest.mark.parametrize(
    "spoil", [Path.unlink, _lose_a_line, _change_a_result, lambda file: os.truncate(file, 0)]
)
def test_incomplete_journal_is_no_pass(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    record = recorded(tmp_path, spoil)
    assert record.verdict is RunVerdict.ERROR
    assert "the journal lacks" in record.trouble
    assert read_results(tmp_path / NAME).verdict is RunVerdict.ERROR


def test_interruption_before_a_result_is_in_the_journal_is_named(tmp_path: Path) -> None:
    record = recorded(tmp_path, _lose_a_line, note="interrupted")
    assert record.verdict is RunVerdict.ERROR
    assert "interrupted" in record.trouble


def test_truncated_results_are_refused(tmp_path: Path) -> None:
    path = tmp_path / NAME
    write_results(run(case("drill.first"), case("drill.second", Outcome.FAIL)), path)
    text = path.read_text()
    for length in range(0, len(text) - 1, 7):
        path.write_text(text[:length])
        with pytest.raises(ReportError):
            read_results(path)
