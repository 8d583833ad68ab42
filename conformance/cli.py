"""The command `uevt`: a thin coat over the pytest plugin, the build store and the guests."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from conformance.options import STDOUT, declare, make_absolute, open_ktap
from conformance.report.errors import ReportError
from conformance.report.exits import Ending, ExitStyle, exit_code
from conformance.report.ktap_stream import KtapRuns
from conformance.sessions import ROOT, become, decisive, session
from kernels.catalog import KernelEntry, load_catalog
from kernels.errors import (
    KernelsError,
    KernelTrouble,
    MissingTool,
    SourceUnavailable,
    UserMistake,
)
from kernels.progress import StreamProgress
from kernels.store import Store

# Variables that name a directory, from where the user is.
_DIRECTORIES = ("UEVT_CACHE", "UEVT_TARBALLS")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    style = _style(argv)
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.perform(arguments)
        sys.stdout.flush()
    except SystemExit as ended:
        # argparse has told what is wrong, or helped.
        return exit_code(Ending.USAGE if ended.code else Ending.PASS, style)
    except (UserMistake, ReportError) as error:
        return _fail(error, Ending.USAGE, style)
    except KernelTrouble as error:
        return _fail(error, Ending.BUILD_FAILED, style)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_code(Ending.PASS)
    except (KernelsError, OSError) as error:
        return _fail(error, Ending.HOST, style)
    except KeyboardInterrupt:
        return exit_code(Ending.INTERRUPTED, style)
    return code


def _style(argv: Sequence[str] | None) -> ExitStyle:
    """The style asked for, whatever else is wrong with a command line."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--exit-style", type=ExitStyle, default=ExitStyle.DEFAULT)
    try:
        style: ExitStyle = parser.parse_known_args(argv)[0].exit_style
    except argparse.ArgumentError:
        return ExitStyle.DEFAULT
    return style


def _fail(error: Exception, ending: Ending, style: ExitStyle) -> int:
    mend = getattr(error, "mend", "")
    print(f"uevt: {error}" + (f"; {mend}" if mend else ""), file=sys.stderr)
    return exit_code(ending, style)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="uevt", description="Conformance suite for the Linux user_events ABI."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    doctor = commands.add_parser("doctor", help="say whether this machine can run the suite")
    doctor.add_argument("--json", action="store_true", help="for programs")
    doctor.set_defaults(perform=_doctor)
    _add_kernels(commands)
    _add_run(commands)
    compare = commands.add_parser("compare", help="say what changed from one run to another")
    for name in ("base", "new"):
        compare.add_argument(name, type=Path, metavar=name.upper(), help="a directory of results")
    compare.add_argument("--json", action="store_true", help="for programs")
    compare.set_defaults(perform=_compare)
    return parser


def _add_kernels(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    kernels = commands.add_parser("kernels", help="the kernels of the catalog")
    verbs = kernels.add_subparsers(required=True, metavar="VERB")
    for verb, perform, text in (
        ("list", _kernels_list, "all kernels: which are built, can be, cannot be and why"),
        ("build", _kernels_build, "build kernels that are not in the store"),
        ("path", _kernels_path, "print the bzImage of built kernels"),
    ):
        parser = verbs.add_parser(verb, help=text)
        parser.add_argument("kernel", nargs="*", metavar="KERNEL")
        parser.set_defaults(perform=perform)
        if verb == "list":
            parser.add_argument("--json", action="store_true", help="for programs")
            parser.add_argument(
                "--buildable",
                action="store_true",
                help="only names: those of all kernels (or of KERNEL…) that are built or can be",
            )
        if verb == "build":
            parser.add_argument("--refresh", action="store_true", help="ask for newer revisions")
    gc = verbs.add_parser("gc", help="bound the build store: what was not used for longest goes")
    bound = gc.add_mutually_exclusive_group()
    bound.add_argument("--keep", metavar="SIZE", type=size, help="what may stay, as 10G or 800M")
    days = "what was not used for so many days goes (default: 30)"
    bound.add_argument("--older", metavar="DAYS", type=float, default=30.0, help=days)
    gc.add_argument("--all", action="store_true", help="even what the default kernels need")
    gc.add_argument("--dry-run", action="store_true", help="only say what would go")
    gc.add_argument("--json", action="store_true", help="for programs")
    gc.set_defaults(perform=_kernels_gc)


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser("run", help="judge kernels")
    add = run.add_argument
    add("--kernel", action="append", default=[], metavar="K", help="6.12, 6.12@REVISION or model")
    add("-k", dest="keyword", metavar="EXPR", help="only cases with EXPR in their ids")
    add("-q", "--quiet", action="store_true", help="a line per unexpected case, and the verdict")
    add("-n", "--guests", type=int, metavar="N", help="guests side by side (default: what fits)")
    add("--against", choices=["base"], help="run without --patch as well, and compare")
    declare(add)
    run.set_defaults(perform=_run)


# kernels


def _entries(names: Sequence[str]) -> list[KernelEntry]:
    catalog = load_catalog()
    return [catalog.find(name) for name in names] if names else list(catalog.default())


def _kernels_list(arguments: argparse.Namespace) -> int:
    from kernels.availability import State, survey

    if arguments.buildable:
        found = survey(_entries(arguments.kernel), Store())
        for one in found:
            if one.state in (State.BUILT, State.BUILDABLE):
                print(one.entry.kernel_id)
        return 0
    catalog = load_catalog()
    chosen = [catalog.find(name) for name in arguments.kernel] or catalog.entries.values()
    found = survey(chosen, Store())
    if arguments.json:
        print(json.dumps([one.to_json() for one in found], indent=1))
        return 0
    for one in found:
        source = f"variant of {one.entry.of}" if one.entry.of else str(one.entry.source)
        print(f"{one.entry.kernel_id:<25} {source:<37} {one}")
    return 0


def _kernels_build(arguments: argparse.Namespace) -> int:
    from kernels.build import ensure

    built = 0
    for entry in _entries(arguments.kernel):
        progress = StreamProgress(sys.stderr)
        try:
            print(ensure(entry, Store(), progress=progress, refresh=arguments.refresh).image)
            built += 1
        except (MissingTool, SourceUnavailable) as error:
            if arguments.kernel:
                raise
            # "All kernels" are those that can be built here.
            print(f"uevt: {entry.kernel_id} is left out: {error}; {error.mend}", file=sys.stderr)
    return exit_code(Ending.PASS if built else Ending.HOST)


def _kernels_path(arguments: argparse.Namespace) -> int:
    store = Store()
    for entry in _entries(arguments.kernel):
        built = store.lookup(entry)
        if built is None:
            name = entry.kernel_id
            print(f"uevt: {name} is not built; uevt kernels build {name}", file=sys.stderr)
            return exit_code(Ending.HOST)
        print(built.image)
    return 0


def size(text: str) -> int:
    """Bytes of a size such as 10G or 800M.  Raises ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(text)
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def _kernels_gc(arguments: argparse.Namespace) -> int:
    from kernels.collector import Bound, collect, in_mib

    since = None if arguments.keep is not None else time.time() - arguments.older * 24 * 3600
    bound = Bound(arguments.keep, since, every=arguments.all)
    in_use = load_catalog().default()
    progress = StreamProgress(sys.stderr)
    done = collect(Store(), in_use, bound, dry_run=arguments.dry_run, progress=progress)
    if arguments.json:
        print(json.dumps(done.to_json(), indent=1))
        return 0
    for item in done.gone:
        print(item)
    verb = "would go" if arguments.dry_run else "went"
    print(f"{in_mib(done.freed)} {verb}, {in_mib(done.kept)} stay", end="")
    if arguments.keep is not None and done.kept > arguments.keep:
        needed = f"{in_mib(done.needed)} are what the default kernels need (--all lets it go)"
        print(f": more than asked for, since {needed}; what was just used stays", end="")
    print()
    return 0


# doctor


def _doctor(arguments: argparse.Namespace) -> int:
    from conformance.plugin.doctor import examine

    findings = examine()
    if arguments.json:
        print(json.dumps([finding.to_json() for finding in findings], indent=1))
    else:
        for finding in findings:
            print(finding)
    return exit_code(Ending.PASS if all(finding.ok for finding in findings) else Ending.HOST)


# run


def _run(arguments: argparse.Namespace) -> int:
    """One pytest session for each kernel; the worst of their exit codes."""
    style = ExitStyle(arguments.exit_style)
    kernels: list[str] = arguments.kernel
    # The session runs in the checkout.
    make_absolute(arguments)
    for name in _DIRECTORIES:
        if os.environ.get(name):
            os.environ[name] = str(Path(os.environ[name]).absolute())
    own = [name for name in ("image", "tree") if getattr(arguments, name) is not None]
    if not kernels and not own:
        which = "--kernel 6.12, --kernel model, --tree DIR or --image FILE"
        print(f"uevt: name a kernel: {which}", file=sys.stderr)
        return exit_code(Ending.USAGE, style)
    if kernels and own:
        print(
            f"uevt: --kernel and --{own[0]} exclude each other; give one of them", file=sys.stderr
        )
        return exit_code(Ending.USAGE, style)
    if arguments.guests is not None and arguments.guests < 1:
        print("uevt: -n needs a number of guests, 1 or more", file=sys.stderr)
        return exit_code(Ending.USAGE, style)
    if arguments.ktap == STDOUT:
        arguments.ktap = f"/dev/fd/{_own_stdout()}"
    if arguments.against is not None:
        return _against(arguments)
    if len(kernels) <= 1:
        become(arguments, kernels[0] if kernels else None, arguments.out)
    outs = [_out(arguments, kernel) for kernel in kernels]
    ktap = open_ktap(arguments.ktap)
    runs = None if ktap is None else KtapRuns(ktap, len(kernels))
    codes = []
    for kernel, out in zip(kernels, outs, strict=True):
        codes.append(session(arguments, kernel, out, runs=runs))
        if codes[-1] == exit_code(Ending.INTERRUPTED, style):
            if runs is not None:
                runs.bail_out("interrupted")
            break
    return decisive(codes, style)


def _own_stdout() -> int:
    """Standard output by another number; whoever writes to it as before gets standard error."""
    number = os.dup(sys.stdout.fileno())
    os.set_inheritable(number, True)
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return number


def _out(arguments: argparse.Namespace, kernel: str) -> str | None:
    """Where the results of one of several kernels go."""
    from conformance.against import kernel_id

    # Before anything runs: what is wrong with the last kernel's name is said at once.
    name = kernel_id(arguments, kernel)
    return None if arguments.out is None else str(Path(arguments.out) / name)


def _against(arguments: argparse.Namespace) -> int:
    """Each kernel without patches and with them; the worst of the exit codes."""
    from conformance.against import judge

    style = ExitStyle(arguments.exit_style)
    codes: list[int] = []
    for kernel in arguments.kernel or [None]:
        codes += judge(arguments, kernel, session, ROOT / "results")
        if codes[-1] == exit_code(Ending.INTERRUPTED, style):
            break
    return decisive(codes, style)


def _compare(arguments: argparse.Namespace) -> int:
    from conformance.against import show_runs

    return show_runs(arguments.base, arguments.new, as_json=arguments.json)
