"""The command line itself: version, completion, manual page, examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.cli.command_tree import commands_of
from conformance.cli.completion import SHELLS
from conformance.cli.examples import EXAMPLES
from conformance.cli.main import build_parser
from conformance.cli.manual import render_manual
from conformance.cli.reference import MANUAL
from tests.conftest import Uevt

ASK = """\
source {script}
COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) COMP_LINE="{words}"
_shtab_uevt
echo "${{COMPREPLY[@]}}"
"""


def test_version_names_the_revision(uevt: Uevt) -> None:
    assert re.fullmatch(r"uevt \d+\.\d+\.\d+ \(\S+\)\n", uevt("--version").out)


def test_directories_in_the_environment_are_those_of_the_user_for_every_command(
    uevt: Uevt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions, and tasks of a matrix, run in the checkout."""
    monkeypatch.chdir(tmp_path)
    for name in ("UEVT_CACHE", "UEVT_TARBALLS"):
        monkeypatch.setenv(name, name.lower())
    uevt("completion", "bash")
    assert os.environ["UEVT_CACHE"] == f"{tmp_path}/uevt_cache"
    assert os.environ["UEVT_TARBALLS"] == f"{tmp_path}/uevt_tarballs"


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_scripts_are_valid(uevt: Uevt, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    script = tmp_path / "script"
    script.write_text(uevt("completion", shell).out)
    subprocess.run([shell, "-n", script], check=True, timeout=30)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("uevt ke", "kernels"),
        ("uevt run --tier f", "full"),
        ("uevt run --kernel 6.12-", "6.12-without-user-events"),
        ("uevt kernels build mai", "mainline"),
        ("uevt run --against b", "base"),
    ],
)
def test_bash_completes(uevt: Uevt, tmp_path: Path, words: str, expected: str) -> None:
    script = tmp_path / "script"
    script.write_text(uevt("completion", "bash").out)
    asked = ["bash", "-c", ASK.format(script=script, words=words)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == [expected]


def test_manual_page_is_current_and_has_every_option() -> None:
    page = MANUAL.read_text(encoding="utf-8")
    assert page == render_manual(), "run make docs"
    for command in commands_of(build_parser()):
        for action in command.actions:
            for name in action.option_strings:
                assert name.replace("-", "\\-") in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_groff_formats_the_manual_page_without_a_warning() -> None:
    command = ["groff", "-man", "-ww", "-Tutf8", "-z", str(MANUAL)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert done.stderr == ""


def test_every_option_of_run_belongs_to_a_group() -> None:
    (run,) = [each for each in commands_of(build_parser(["run"])) if each.name == "uevt run"]
    assert "" not in dict(run.groups)


def test_examples_are_of_commands() -> None:
    assert set(EXAMPLES) <= {each.name for each in commands_of(build_parser())}
