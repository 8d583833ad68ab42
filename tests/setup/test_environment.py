""".ci/find-python, .ci/environment and .ci/run create one environment, once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.setup.conftest import ROOT, SCRIPT_SECONDS, FakeMachine
from tests.shell_scripts import write_script

PYPROJECT = '[project]\nname = "uevt"\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the scripts and a pyproject.toml."""
    directory = tmp_path / "checkout"
    shutil.copytree(ROOT / ".ci", directory / ".ci")
    (directory / "pyproject.toml").write_text(PYPROJECT)
    return directory


def interpreter(machine: FakeMachine, *, pip: str = "") -> None:
    """A python3 whose `-m venv` creates another one, whose pip runs the shell line `pip`."""
    inner = write_script(
        machine.root / "inner-python",
        f"""case $* in '-m pip '*) echo "pip $*" >>"{machine.log}"; {pip or ":"} ;; esac""",
    )
    machine.stub(
        "python3",
        f"""case $* in
    *version_info*) exit 0 ;;
    '-m venv --clear .venv')
        echo venv >>"{machine.log}"
        rm -rf .venv; mkdir -p .venv/bin; /bin/cp "{inner}" .venv/bin/python ;;
esac""",
        logged=False,
    )


def verbs(machine: FakeMachine) -> list[str]:
    """The first words of all calls."""
    return [call.split()[0] for call in machine.calls]


def test_environment_is_created_once(machine: FakeMachine, checkout: Path) -> None:
    interpreter(machine)
    assert machine.run(checkout / ".ci/environment").out == ""
    assert verbs(machine) == ["venv", "pip"]
    pip = machine.calls[1]
    assert pip.endswith(" --editable .")
    assert "--isolated" not in pip
    assert "index" not in pip

    assert machine.run(checkout / ".ci/environment").err == ""
    assert verbs(machine) == ["venv", "pip"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("echo 'version = \"2\"' >>pyproject.toml", ["pip"]),
        # A distribution upgrade removed the target of .venv/bin/python.
        ("rm .venv/bin/python", ["venv", "pip"]),
    ],
    ids=["pyproject.toml", "interpreter"],
)
def test_environment_follows_changes(
    machine: FakeMachine, checkout: Path, change: str, expected: list[str]
) -> None:
    interpreter(machine)
    machine.run(checkout / ".ci/environment")
    subprocess.run(change, shell=True, cwd=checkout, check=True)
    machine.run(checkout / ".ci/environment")
    assert verbs(machine) == ["venv", "pip", *expected]


def test_unusable_environment_is_replaced(machine: FakeMachine, checkout: Path) -> None:
    interpreter(machine)
    # Created with another tool: it starts, but has no pip or is too old.
    write_script(checkout / ".venv/bin/python", "case $* in *'import pip'*) exit 1 ;; esac")
    machine.run(checkout / ".ci/environment")
    assert verbs(machine) == ["venv", "pip"]


def test_a_moved_checkout_is_installed_again(machine: FakeMachine, checkout: Path) -> None:
    interpreter(machine)
    machine.run(checkout / ".ci/environment")
    elsewhere = checkout.rename(checkout.with_name("elsewhere"))
    machine.run(elsewhere / ".ci/environment")
    assert verbs(machine)[-1] == "pip"


def test_failing_pip_leaves_no_stamp(machine: FakeMachine, checkout: Path) -> None:
    interpreter(machine, pip="echo 'ERROR: no index' >&2; exit 1")
    answer = machine.run(checkout / ".ci/environment", code=3)
    assert answer.err.splitlines()[-2] == "ERROR: no index"
    assert answer.err.splitlines()[-1].startswith("setup: pip failed; ")
    assert not (checkout / ".venv/uevt-environment").exists()
    machine.run(checkout / ".ci/environment", code=3)


def test_concurrent_calls_create_one_environment(machine: FakeMachine, checkout: Path) -> None:
    interpreter(machine, pip="sleep 0.3")
    both = [
        subprocess.Popen([checkout / ".ci/environment"], env=machine.environment())
        for _ in range(2)
    ]
    assert [one.wait(SCRIPT_SECONDS) for one in both] == [0, 0]
    assert verbs(machine) == ["venv", "pip"]


def test_another_extra_is_added_once(machine: FakeMachine, checkout: Path) -> None:
    interpreter(machine)
    for extra in ((), ("browser",), (), ("browser",)):
        machine.run(checkout / ".ci/environment", *extra)
    assert verbs(machine) == ["venv", "pip", "pip"]
    assert machine.calls[2].endswith(" --editable .[browser]")


@pytest.mark.parametrize(
    ("environment", "tried"),
    [({}, "python3 "), ({"UEVT_PYTHON": "/nowhere/python3"}, "/nowhere/python3;")],
    ids=["every name", "named"],
)
def test_old_or_absent_python_is_refused(
    machine: FakeMachine, environment: dict[str, str], tried: str
) -> None:
    machine.stub("python3", "exit 1", logged=False)
    answer = machine.run(ROOT / ".ci/find-python", **environment, code=3)
    assert answer.err.startswith(f"setup: Python 3.11 or newer is needed, tried: {tried}")
    assert answer.err.count("\n") == 1


def test_a_newer_python_by_another_name_is_found(machine: FakeMachine) -> None:
    machine.stub("python3", "exit 1", logged=False)
    machine.stub("python3.12", f'exec {sys.executable} "$@"', logged=False)
    assert machine.run(ROOT / ".ci/find-python").out == f"{machine.bin}/python3.12\n"


@pytest.mark.parametrize("code", [0, 2])
def test_ci_run_installs_make_and_returns_its_status(
    machine: FakeMachine, checkout: Path, code: int
) -> None:
    machine.stub("make", f"exit {code}")
    make = machine.bin / "make"
    hidden = make.rename(machine.root / "make")
    write_script(
        checkout / ".ci/host-packages",
        f'echo packages >>"{machine.log}"; /bin/mv "{hidden}" "{make}"',
    )
    machine.run(checkout / ".ci/run", code=code)
    assert machine.calls == ["packages", "make --no-print-directory test"]


@pytest.mark.parametrize("script", ["run", "setup", "host-packages", "environment", "find-python"])
def test_the_scripts_are_posix_sh(script: str) -> None:
    path = ROOT / ".ci" / script
    assert path.read_text().startswith("#!/bin/sh\n")
    assert path.stat().st_mode & 0o111
    checked = subprocess.run(["sh", "-n", path], check=False, timeout=SCRIPT_SECONDS)
    assert checked.returncode == 0
