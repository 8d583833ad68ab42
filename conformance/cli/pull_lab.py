"""`uevt pull-lab`: a job definition of KernelCI's pull labs in, a verdict and KCIDB out."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.cli.export import declare_sender, sender_of
from conformance.cli.main import build_parser
from conformance.cli.output import write
from conformance.report.export.kcidb import render_kcidb
from conformance.results.directory import require_empty
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.results_json import NAME, read_results
from conformance.session.launch import session
from conformance.session.options import apply_defaults, make_absolute
from host.deadline import Deadline
from host.progress import StreamProgress
from host.temporary_directories import scratch
from kernels.errors import TookTooLong
from kernels.lab_job import LabJob, unpack_modules

KCIDB = "kcidb.json"
"""The file in --out to send to KCIDB."""
# Seconds after the end of a job for what ends a run: the last case, and the reports.
_ENDING_S = 20.0


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("job", type=Path, metavar="JOB", help="a job definition (JSON)")
    about = f"results directory, which gets {KCIDB} as well"
    parser.add_argument("--out", required=True, metavar="DIR", help=about)
    declare_sender(parser)
    parser.set_defaults(perform=_perform)


def _perform(arguments: argparse.Namespace) -> int:
    """The exit code of the run.  Raises KernelsError, ReportError."""
    sender = sender_of(arguments)
    job = LabJob.read(arguments.job.absolute())
    if job.others:
        sys.stderr.write(f"uevt: not run, of another type: {', '.join(map(repr, job.others))}\n")
    out = Path(arguments.out).absolute()
    require_empty(out)
    with scratch() as directory:
        code = _run(job, out, directory)
    if not (out / NAME).exists():
        return code
    target = out / KCIDB
    text = render_kcidb([read_results(out / NAME)], sender)
    write(text, target, "see uevt export --format kcidb")
    sys.stderr.write(f"uevt: to send to KCIDB: {target}\n")
    return code


def _run(job: LabJob, out: Path, directory: Path) -> int:
    """Fetch the artifacts, and judge the kernel in what is left of the time."""
    left = Deadline(job.timeout_s, f"results of {job.test}")
    tell = StreamProgress(sys.stderr)
    image = job.fetch(job.kernel, directory, left, tell)
    words = ["run", "--image", str(image), "--out", str(out)]
    if job.modules is not None:
        archive = job.fetch(job.modules, directory, left, tell)
        words += ["--modules", str(unpack_modules(archive, directory / "unpacked", left))]
    words += [f"-k{job.parameters['k']}"] if "k" in job.parameters else []
    words += [f"--{name}={value}" for name, value in job.parameters.items() if name != "k"]
    if left.expired:
        raise TookTooLong(left.what, left.seconds)
    options = build_parser(words).parse_args([*words, f"--deadline={left.remaining():.0f}"])
    make_absolute(options)
    apply_defaults(options)
    with _ended_by_force(left.remaining() + _ENDING_S) as is_over:
        code = session(options, None, str(out))
    if not is_over():
        return code
    sys.stderr.write(f"uevt: ended {_ENDING_S:g} s after the {job.timeout_s} s of the job\n")
    return exit_code(Ending.HOST)


@contextmanager
def _ended_by_force(seconds: float) -> Iterator[Callable[[], bool]]:
    """End the session by SIGTERM after this time; yields whether that happened.

    --deadline bounds the cases and not the boots, of which a kernel that hangs gets several.
    """
    over = False

    def terminate(*_: object) -> None:
        nonlocal over
        over = True
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGALRM, terminate)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield lambda: over
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
