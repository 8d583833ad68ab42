""".ci/find-python, .ci/environment and .ci/run create one environment, once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.setup.fake_machine import ROOT, SCRIPT_SECONDS, FakeMachine

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
    inner = machine.root / "inner-python"
    inner.write_text(
        f"""#!/bin/sh
case $* in
    '-m pip '*) echo "pip $*" >>"{machine.log}"; {pip or ":"} ;;
esac
"""
    )
    inner.chmod(0o755)
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
    answer = machine.run(checkout / ".ci/environment")
    assert (answer.code, answer.out) == (0, "")
    assert verbs(machine) == ["venv", "pip"]
    pip = machine.calls[1]
    assert pip.endswith(" --editable .")
    assert "--isolated" not in pip
    assert "index" not in pip

    answer = machine.run(checkout / ".ci/environment")
    assert (answer.code, answer.err) == (0, "")
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
    assert machine.run(checkout / ".ci/environment").code == 0
    subprocess.run(change, shell=True, cwd=checkout, check=True)
    assert machine.run(checkout / ".ci/environment").code == 0
    assert verbs(machine) == ["venv", "pip", *expected]


def test_an_environment_that_cannot_take_uevt_is_replaced(
    machine: FakeMachine, checkout: Path
) -> None:
    interpreter(machine)
    # Created with another tool: it starts, but has no pip or is too old.
    python = checkout / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\ncase $* in *'import pip'*) exit 1 ;; esac\n")
    python.chmod(0o755)
    assert machine.run(checkout / ".ci/environment").code == 0
    assert verbs(machine) == ["venv", "pip"]


def test_a_moved_checkout_is_installed_again(machine: FakeMachine, checkout: Path) -> None:
    interpreter(machine)
    assert machine.run(checkout / ".ci/environment").code == 0
    elsewhere = checkout.rename(checkout.with_name("elsewhere"))
    assert machine.run(elsewhere / ".ci/environment").code == 0
    assert verbs(machine)[-1] == "pip"


def test_failing_pip_leaves_no_stamp(machine: FakeMachine, checkout: Path) -> None:
    interpreter(machine, pip="echo 'ERROR: no index' >&2; exit 1")
    answer = machine.run(checkout / ".ci/environment")
    assert answer.code == 3
    assert answer.err.splitlines()[-2] == "ERROR: no index"
    assert answer.err.splitlines()[-1].startswith("setup: pip failed; ")
    assert not (checkout / ".venv/uevt-environment").exists()
    assert machine.run(checkout / ".ci/environment").code == 3


def test_concurrent_calls_create_one_environment(machine: FakeMachine, checkout: Path) -> None:
    interpreter(machine, pip="sleep 0.3")
    both = [
        subprocess.Popen([checkout / ".ci/environment"], env=machine.environment())
        for _ in range(2)
    ]
    assert [one.wait(SCRIPT_SECONDS) for one in both] == [0, 0]
    assert verbs(machine) == ["venv", "pip"]


def test_another_extra_is_added_to_the_environment_once(
    machine: FakeMachine, checkout: Path
) -> None:
    interpreter(machine)
    for extra in ((), ("browser",), (), ("browser",)):
        assert machine.run(checkout / ".ci/environment", *extra).code == 0
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
    answer = machine.run(ROOT / ".ci/find-python", **environment)
    assert answer.code == 3
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
    packages = checkout / ".ci/host-packages"
    make = machine.bin / "make"
    packages.write_text(
        f'#!/bin/sh\necho packages >>"{machine.log}"\n'
        f'printf "#!/bin/sh\\necho make \\$* >>{machine.log}\\nexit {code}\\n" >"{make}"\n'
        f'/bin/chmod +x "{make}"\n'
    )
    assert machine.run(checkout / ".ci/run").code == code
    assert machine.calls == ["packages", "make --no-print-directory test"]


@pytest.mark.parametrize("script", ["run", "setup", "host-packages", "environment", "find-python"])
def test_the_scripts_are_posix_sh(script: str) -> None:
    path = ROOT / ".ci" / script
    assert path.read_text().startswith("#!/bin/sh\n")
    assert path.stat().st_mode & 0o111
    checked = subprocess.run(["sh", "-n", path], check=False, timeout=SCRIPT_SECONDS)
    assert checked.returncode == 0
