"""Resume a run that was killed: recall its options, and check that it is the same run."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from conformance.results import journal
from conformance.results.case_result import CaseResult
from conformance.results.errors import ReportError
from conformance.results.outcome import Blame, Outcome
from conformance.results.replay import Journal, Running, read_head
from conformance.results.run import RunHead
from conformance.session.options import fill_missing, value_of

# A case is abandoned after this many deaths of its worker.
MOST_DEATHS = 2
# Options besides the kernel that determine which cases run and how.
_SELECTING = (
    *("-k", "--only", "--frozen", "--tier"),
    *("--isolation", "--repeat", "--shuffle", "--append", "--shard"),
)
_NEW_RUN = "start a new run: another --out, or --out with --force"


def recall_options(options: Namespace) -> None:
    """Fill options that were not given from the run in ``--resume DIR``.

    Without a run in it they stay unset.  Raises ReportError.
    """
    directory = Path(options.resume)
    for name in ("out", "force"):
        if getattr(options, name):
            raise ReportError(directory, f"--resume and --{name} exclude each other", "give one")
    head = read_head(directory / journal.NAME)
    if head is not None:
        try:
            fill_missing(options, head.asked)
        except ValueError as error:
            raise ReportError.malformed(directory / journal.NAME, f"line 1: {error}") from error
    elif all(getattr(options, name, None) is None for name in ("kernel", "image", "tree", "here")):
        raise ReportError(directory, "has no run to resume", _hint(directory))


def _hint(directory: Path) -> str:
    below = sorted(each.parent.name for each in directory.glob(f"*/{journal.NAME}"))
    if below:
        return f"name one below it: {', '.join(below[:5])}"
    return "name the directory of a run, or a kernel to begin one there"


def require_same_run(was: RunHead, now: RunHead, directory: Path) -> None:
    """Raise ReportError naming every difference from the run to resume."""
    if found := differences(was, now):
        what = f"would resume as another run: {'; '.join(found)}"
        raise ReportError(directory, what, f"restore that, or {_NEW_RUN}")


def differences(was: RunHead, now: RunHead) -> list[str]:
    """What differs between two runs in the kernel, the cases, the suite, or how they were run."""
    found = [
        f"kernel {name} was {_short(before)} and is {_short(after)}"
        for name in was.kernel.__struct_fields__
        # The build differs with the patches.
        if name != "patches"
        and (before := getattr(was.kernel, name)) != (after := getattr(now.kernel, name))
    ]
    for option in _SELECTING:
        before, after = (value_of(option, each.asked) for each in (was, now))
        if before != after:
            found.append(f"{option} was {before or 'not given'} and is {after or 'not given'}")
    if was.fail_on != now.fail_on:
        found.append(f"--fail-on was {was.fail_on} and is {now.fail_on}")
    if was.host["accel"] != now.host["accel"]:
        found.append(f"accelerator was {was.host['accel']} and is {now.host['accel']}")
    if was.suite != now.suite:
        found.append(f"suite was {was.suite} and is {now.suite}")
    elif was.suite_sha256 != now.suite_sha256:
        found.append(f"suite {now.suite} has been edited")
    return found


def _short(value: object) -> str:
    text = str(value)
    return f"{text[:12]}…" if len(text) == 64 else text


def abandoned_cases(journal: Journal) -> list[tuple[Running, CaseResult]]:
    """Results of the cases in which the run died too often to try again."""
    return [
        (running, without_verdict(running, deaths))
        for running, deaths in journal.deaths.items()
        if deaths >= MOST_DEATHS and running.id not in journal.results
    ]


def worker_died(running: Running) -> CaseResult:
    """The result of a case whose worker died; the case runs again."""
    return _error(running, Blame.HOST, "the process that ran it died")


def without_verdict(running: Running, deaths: int) -> CaseResult:
    """The result of a case that is abandoned after so many deaths."""
    why = f"{deaths} times the process that ran it died; run it alone: -k {running.id}"
    return _error(running, Blame.HARNESS, why)


def _error(running: Running, blame: Blame, reason: str) -> CaseResult:
    surface = running.id.partition(".")[0]
    return CaseResult(running.id, surface, running.tier, Outcome.ERROR, blame, reason)
