"""What commands on one kernel share, and the files that commands write."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.abi.profile import ProfileError
from conformance.cli.output import write
from conformance.results.errors import ReportError
from conformance.session.target import target
from tests.conftest import Uevt
from vm.errors import VmError

COMMANDS = {"client": ["--", "true"], "explore": [], "selftests": [], "shell": []}
each_command = pytest.mark.parametrize(("name", "words"), COMMANDS.items(), ids=COMMANDS)


@each_command
@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (ProfileError("no such ABI"), 2, "no such ABI; only kernels with user_events can be "),
        (VmError("no KVM", hint="use TCG"), 3, "no KVM; use TCG"),
    ],
)
def test_errors_of_the_target_have_a_hint(
    name: str,
    words: list[str],
    error: Exception,
    code: int,
    printed: str,
    uevt: Uevt,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(_: object) -> None:
        raise error

    monkeypatch.setattr(target, "resolve", resolve)
    assert f"uevt: {printed}" in uevt(name, "--kernel", "6.12", *words, code=code).err


def test_the_target_of_a_link_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write("text", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_full_disk_is_no_error_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        write("text", Path("/dev/full"))
    with pytest.raises(ReportError, match="cannot be written: No such file"):
        write("text", tmp_path / "none" / "file")
