"""`uevt explore`: random programs on a kernel, in lock step with the model."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from conformance.cli import one_kernel
from conformance.report.failure import render_failure
from conformance.repro.errors import NotExpressible
from conformance.repro.source import Description, c_program
from conformance.results.directory import claim, reserved
from conformance.results.exit_codes import Ending, exit_code
from conformance.results.multi_format import from_zero
from conformance.session.explore.corpus import Corpus
from conformance.session.explore.exploration import Exploration, Plan, explore
from conformance.session.explore.explorer import Played
from conformance.session.options import KERNEL
from conformance.session.options import seconds as seconds_of
from conformance.session.target.target import Target
from host.deadline import Deadline
from host.files import write_atomically
from host.progress import Step, StreamProgress
from host.temporary_directories import scratch
from host.text import counted, one_line, wrapped
from kernels.errors import HostTrouble
from kernels.store.store import Store

_SECONDS = 60.0
_MOST_GUESTS = 4


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "uevt explore (--kernel K | --tree DIR | --image FILE) [option …]"
    group = one_kernel.declare(parser, _perform)
    group(KERNEL)("--abi", metavar="A", help="judge by this ABI instead of the kernel's own")
    add = group("programs")
    about = f"explore for so long (default: {_SECONDS:g}, without limit with --count)"
    add("--time", type=seconds_of, metavar="SECONDS", help=about)
    add("--count", type=_positive, metavar="N", help="run so many programs")
    about = "the seed of a former exploration: the same programs, without those of the corpus"
    add("--seed", metavar="S", help=about)
    about = "write the programs that diverge to a new directory (default: results/explore/KERNEL)"
    group("output")("--out", metavar="DIR", help=about)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def _perform(arguments: argparse.Namespace) -> int:
    """0 if nothing diverges, 1 if something does.

    Raises HostTrouble if no program was judged, KernelsError, ReportError.
    """
    hint = "name a kernel: --kernel 6.12"
    one_kernel.refuse_model(arguments, "the model cannot diverge from itself", hint)
    out = None if arguments.out is None else Path(arguments.out).absolute()
    if out is not None:
        # Before a kernel is built and programs are found.
        claim(out)
    with one_kernel.resolved(arguments, "explored") as target:
        if out is not None:
            return _explored(arguments, target, out)
        out = reserved(Path("results", "explore", target.id))
        try:
            return _explored(arguments, target, out)
        finally:
            # Nothing diverged.
            with suppress(OSError):
                out.rmdir()


def _explored(arguments: argparse.Namespace, target: Target, out: Path) -> int:
    seed = arguments.seed or secrets.token_hex(4)
    # A seed repeats an exploration: what was learnt since must not change its programs.
    kept = None if arguments.seed else Store().root / "explore" / f"{target.profile.name}.json"
    corpus = Corpus(kept)
    seconds = arguments.time or (None if arguments.count else _SECONDS)
    plan = Plan(target, seed, seconds, arguments.count, corpus.read())
    guests = min(os.cpu_count() or 1, _MOST_GUESTS)
    progress, deadline = StreamProgress(sys.stderr), Deadline(seconds or 0.0, "exploration")

    done = Exploration()
    shown: list[Played] = []

    def show_new() -> None:
        for played in done.divergences[len(shown) :]:
            shown.append(played)
            directory = out / str(len(shown))
            print(*render_failure(played.result), sep="\n")
            _write_files(played, target, directory)
            print(f"  programs    {one_line(str(directory))}\n", flush=True)

    def says(so_far: Exploration) -> None:
        found = len(so_far.divergences)
        phase = f"exploring {target.id}, {counted(found, 'divergence')}"
        number, passing = so_far.counts.programs, found == len(shown)
        progress(Step(phase, deadline.elapsed, number, unit="programs", passing=passing))
        show_new()

    try:
        with scratch() as directory:
            explore(plan, directory, corpus, guests, done, says)
    finally:
        # Also after Ctrl-C.
        show_new()
        _keep(corpus)
        if done.counts.programs:
            # Kept programs are part of no seed.
            print(*_summary(done, corpus, "" if plan.kept else seed, deadline.elapsed), sep="\n")
    if not done.divergences and not done.counts.judged:
        raise HostTrouble(
            f"{target.id} was not explored: {_reason(done)}", "judge the kernel first: uevt run"
        )
    found = counted(len(done.divergences), "divergence") if done.divergences else "no divergence"
    print(f"uevt: {target.id} explored: {found}")
    return exit_code(Ending.UNEXPECTED if done.divergences else Ending.PASS)


def _keep(corpus: Corpus) -> None:
    """Write the corpus; what was found counts without it as well."""
    try:
        corpus.write()
    except OSError as error:
        print(f"uevt: the corpus is not kept: {one_line(str(error))}", file=sys.stderr)


def _reason(done: Exploration) -> str:
    """Why no program was judged."""
    reasons = (done.counts.no_verdict + done.counts.not_modelled).most_common(1)
    return one_line(reasons[0][0]) if reasons else "no program ended in time"


def _summary(done: Exploration, corpus: Corpus, seed: str, elapsed_s: float) -> Iterator[str]:
    counts = done.counts
    rate = counts.operations / elapsed_s
    programs = counted(counts.programs, "program")
    yield f"programs  {programs}, {counts.operations:,} operations, {rate:,.0f} per second"
    yield f"corpus    {counted(len(corpus.programs), 'program')}, {corpus.size:,} answers reached"
    for title, reasons in (
        ("unknown to the model", counts.not_modelled),
        ("no verdict", counts.no_verdict),
    ):
        for reason, number in reasons.most_common():
            yield from wrapped(one_line(f"{title}: {reason} ({number} times)"), hanging=2)
    if seed:
        yield f"seed      {seed}"


def _write_files(played: Played, target: Target, directory: Path) -> None:
    """The failure, a case, and a C program.  Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    result = played.result
    write_atomically(directory / "failure.txt", "\n".join(render_failure(result)) + "\n")
    write_atomically(directory / "test_explored.py", _case(played))
    about = Description(result.id, result.sentence, "", f"{target.id}, seen by uevt explore")
    try:
        text = c_program(from_zero(result.evidence.program), target.profile, about)
    except NotExpressible as error:
        text = f"/* {error} */\n"
    write_atomically(directory / "explored.c", text)


def _case(played: Played) -> str:
    """A case that makes the same calls, to be given a name, a sentence and a literal."""
    body = "".join(f"    {line}\n" for line in played.text)
    difference = one_line(played.result.difference)
    return _CASE.format(imports=IMPORTS, body=body, difference=difference)


IMPORTS = """\
from conformance.client.memory import discard, memory_file
from conformance.client.perf import PerfAttr, open_stored, store_id
from conformance.client.races import RaceCalls, race, track
from conformance.client.tasks import first_task
from conformance.ops import Discard
"""
"""What the calls of any program need."""
_CASE = """\
from conformance.cases.case import surface
{imports}from conformance.client.user_events import UserEvents

case = surface("explored", spec="", doc="silent", level="behaviour")


@case
def test_explored(ue: UserEvents) -> None:
    \"\"\"What the kernel promises.\"\"\"
{body}    # {difference}
"""
