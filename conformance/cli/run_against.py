"""`uevt run --against base`: compare a patched kernel with the same one unpatched."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from conformance.cli.compare import compared, show, side
from conformance.report.compare.compare import Comparison
from conformance.report.compare.kinds import Kind
from conformance.report.export.ktap_stream import KtapRuns
from conformance.results.directory import default_directory, link_latest, unused
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.results.outcome import Level, Outcome, RunVerdict
from conformance.results.results_json import NAME, read_results
from conformance.results.run import RunHead
from conformance.session.controller.resume import differences
from conformance.session.controller.run_head import run_head
from conformance.session.launch import Session
from conformance.session.options import command_words, replaced
from conformance.session.target.target import MODEL, check, kernel_id, resolve
from kernels.errors import UserMistake
from vm.errors import VmError


def require_patches(options: Namespace, kernel: str | None) -> None:
    """Raise UserMistake if there is nothing to compare: no patches, or no kernel."""
    if not options.patch or kernel == MODEL:
        hint = "add --kernel 6.12 --patch FILE, or compare two runs with uevt compare"
        raise UserMistake("--against base is for a kernel with --patch", hint)
    check(replaced(options, kernel=kernel))


def judge(
    options: Namespace,
    kernel: str | None,
    session: Session,
    root: Path,
    runs: KtapRuns | None = None,
) -> list[int]:
    """Run a kernel without and with its patches, and print what they change.

    Returns the exit codes that decide; ``runs`` takes the KTAP of the patched kernel as one of
    several.  Raises UserMistake.
    """
    require_patches(options, kernel)
    options = replaced(options, kernel=kernel)
    style = ExitStyle(options.exit_style)
    # KTAP reports the patched kernel only.
    plain = replaced(options, patch=[], ktap=None)
    new = _directory(options, root)
    interrupted = exit_code(Ending.INTERRUPTED, style)
    base = _judged_before(plain, root)
    if base is not None:
        sys.stderr.write(f"uevt: without patches: {base}, judged before\n")
    else:
        base = _directory(plain, root)
        why = "" if plain.out is None else " (without --out, a former run serves)"
        sys.stderr.write(f"uevt: without patches first, into {base}{why}\n")
        with tempfile.TemporaryFile("w+", encoding="utf-8") as stdout:
            before = _identity(base / NAME)
            code = session(plain, kernel, str(base), stdout=stdout)
            if code == interrupted or _identity(base / NAME) in (None, before):
                stdout.seek(0)
                sys.stdout.write(stdout.read())
                if runs is not None and code != interrupted:
                    runs.run(str(kernel), [])
                return [code]
    before = _identity(new / NAME)
    code = session(options, kernel, str(new), runs=runs)
    if code == interrupted or _identity(new / NAME) in (None, before):
        return [code]
    if options.out is None:
        for directory in (base, new):
            link_latest(directory)
    after = side(new)
    comparison = compared(side(base), after, after.record.head.fail_on)
    sys.stdout.write("\n")
    # The run has printed what fails it.
    show(comparison, [each.id for each in after.record.failures])
    if comparison.regression:
        return [code, exit_code(Ending.UNEXPECTED, style)]
    return [exit_code(Ending.PASS, style) if _fails_as_base(comparison) else code]


def _fails_as_base(comparison: Comparison) -> bool:
    """Whether the patched kernel failed, but in nothing that its base does not fail too."""
    record = comparison.new
    if record.verdict is not RunVerdict.FAIL or not comparison.decided:
        return False
    return not any(
        change.new is not None and record.head.fails(change.new.outcome)
        for change in comparison.changes
        if change.kind not in (Kind.DIFFERENT, Kind.REWORDED)
    )


def _judged_before(plain: Namespace, root: Path) -> Path | None:
    """The newest run that judged the same build by the same suite, cases and options.

    Without --out only: its runs are all below one directory.
    """
    found = sorted((root / kernel_id(plain)).glob(f"[0-9]*/{NAME}"), reverse=True)
    if plain.out is not None or not found:
        return None
    try:
        now = _head(plain)
    except VmError:
        # The session meets it too, and reports it.
        return None
    for results in found:
        with suppress(ReportError):
            record = read_results(results)
            same = record.head.asked == now.asked and not differences(record.head, now)
            if same and not (record.missing or record.count(Outcome.ERROR)):
                return results.parent
    return None


def _head(options: Namespace) -> RunHead:
    return run_head(resolve(options), command_words(options), Level(options.fail_on))


def _identity(results: Path) -> tuple[int, int] | None:
    """Identity of a results file, to notice a new one; None if it is missing."""
    try:
        status = results.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _directory(options: Namespace, root: Path) -> Path:
    name = kernel_id(options)
    if options.out is not None:
        return Path(options.out) / name
    return unused(default_directory(root, name, datetime.now(UTC)))
