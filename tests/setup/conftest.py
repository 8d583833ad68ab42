"""A fake host for the scripts of .ci, made of a few files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Printed
from tests.shell_scripts import lines_of, write_script

ROOT = Path(__file__).resolve().parents[2]
# The scripts rely on POSIX, coreutils and util-linux.
BASE_TOOLS = (
    *("cat", "dirname", "env", "flock", "mkdir", "rm", "sh", "sha256sum", "sleep"),
    *("touch", "true"),
)
SCRIPT_SECONDS = 30


class FakeMachine:
    """A search path of stubs and a /usr/include below one directory.

    Every stub appends its name and arguments to `log`; PATH is `bin` alone.
    """

    def __init__(self, directory: Path) -> None:
        self.root = directory
        self.bin = directory / "bin"
        self.log = directory / "log"
        self.bin.mkdir(parents=True)
        for tool in BASE_TOOLS:
            (self.bin / tool).symlink_to(_real(tool))
        self.user(1000)
        # The real interpreter by another name: a link would lose its installation.
        self.stub("python3", f'exec {sys.executable} "$@"', logged=False)

    def stub(self, name: str, body: str = "", *, logged: bool = True) -> None:
        """Put a shell script on the search path."""
        note = f'echo "{name} $*" >>"{self.log}"\n' if logged else ""
        write_script(self.bin / name, note + body)

    def user(self, uid: int) -> None:
        """Set the user id."""
        self.stub("id", f"echo {uid}", logged=False)

    def header(self, name: str) -> None:
        """Install a C header."""
        path = self.root / "usr/include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    @property
    def calls(self) -> list[str]:
        """The calls of logged stubs, in order."""
        return lines_of(self.log)

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a process on this machine."""
        return {"PATH": str(self.bin), "UEVT_HOST_ROOT": str(self.root), **more}

    def run(self, script: Path, *arguments: str, code: int = 0, **more: str) -> Printed:
        """Run a script on this machine, and check its exit code.

        ``more`` are environment variables.
        """
        done = subprocess.run(
            [script, *arguments],
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
            timeout=SCRIPT_SECONDS,
        )
        assert done.returncode == code, done
        return Printed(done.stdout, done.stderr)


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """A machine with a shell, coreutils and Python, and no package manager."""
    return FakeMachine(tmp_path / "machine")


def _real(tool: str) -> Path:
    for directory in os.defpath.split(os.pathsep):
        path = Path(directory) / tool
        if path.exists():
            return path
    raise LookupError(f"{tool} is not in {os.defpath}")
