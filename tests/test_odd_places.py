"""Hosts without space, with few open files, or with closed descriptors."""

from __future__ import annotations

import compileall
import os
import resource
import subprocess
from pathlib import Path

import pytest

from conformance.results.outcome import Outcome
from conformance.results.replay import read_journal
from conformance.session.preflight.host import require_open_files
from kernels.errors import HostTrouble
from tests.enclosure import ROOT, UEVT, Runs
from tests.report.samples import case, kernel, stored

FEW = ("--kernel=model", "-k", "status.")
PATIENCE = 60.0


def test_run_on_a_full_disk_ends_in_one_line_and_can_be_resumed(tmp_path: Path) -> None:
    place, out = Runs(tmp_path, "model"), tmp_path / "out"
    # Python 3.11 does not notice truncated byte code.
    for package in ("conformance", "host", "kernels", "vm"):
        compileall.compile_dir(ROOT / package, quiet=2)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Like a full disk, with another errno.
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
    try:
        code, said = place.run(*FEW, f"--out={out}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 3
    assert said == (
        f"uevt: {out}: File too large; fix that, then resume: uevt run --resume {out}\n"
    )
    kept = read_journal(out / "journal.jsonl")
    assert not kept.torn
    assert kept.count < (kept.selected or 0)
    assert place.run(f"--resume={out}") == (0, "")
    assert place.left() == []


def test_closed_descriptors_are_not_written_into(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = 'exec "$@" <&- >&- 2>&-'
    command = ["sh", "-c", script, "sh", *UEVT, "run", *FEW, f"--out={out}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, timeout=PATIENCE, check=False)
    assert done.returncode == 0
    assert read_journal(out / "journal.jsonl").complete


def test_removed_working_directory_is_named(tmp_path: Path) -> None:
    (gone := tmp_path / "gone").mkdir()
    script = 'rmdir "$PWD"; exec "$@"'
    command = ["sh", "-c", script, "sh", *UEVT, "run", *FEW, "--out=out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=gone, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    why = "uevt: the working directory was removed; change to another one\n"
    assert (done.returncode, done.stderr) == (2, why)


def test_characters_that_the_locale_lacks_are_escaped(tmp_path: Path) -> None:
    run = stored(tmp_path, kernel("6.12", case("a.b", Outcome.FAIL, reason="read 1…2")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "latin-1"}
    for words, shown in ((["matrix", "--help"], r"KERNEL\u2026"), (["report", run], r"1\u20262")):
        command = [*UEVT, *words]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, b"")
        assert shown in done.stdout.decode("latin-1")


@pytest.mark.parametrize(
    ("limits", "becomes"),
    [
        ((256, 4096), (1024, 4096)),
        ((256, 512), (512, 512)),
        ((2048, 4096), None),
        ((256, resource.RLIM_INFINITY), (1024, resource.RLIM_INFINITY)),
    ],
)
def test_open_file_limit_is_raised(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], becomes: tuple[int, int] | None
) -> None:
    made: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: made.append(wanted))
    require_open_files()
    assert made == ([] if becomes is None else [becomes])


def test_too_low_open_file_limit_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (30, 30))
    with pytest.raises(HostTrouble, match="only 30 files may be open at a time") as caught:
        require_open_files()
    assert caught.value.hint == "ulimit -n 1024"
