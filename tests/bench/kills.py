"""`python -m tests.bench.kills`: kill runs at moments by chance, go on with them, and compare.

What a run comes to must not depend on when, or how often, it was killed; and nothing may be left
of what was killed.  Ends with a table, and 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from host.die_with_parent import __file__ as LEASH
from tests.enclosure import ROOT, UEVT, Enclosure

_PATIENCE_S = 600.0
VICTIMS = ("group", "controller", "worker", "qemu")


@dataclass(slots=True)
class Tally:
    """What kills of one kind came to."""

    kills: int = 0
    found: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def line(self, what: str, victim: str) -> str:
        """A row of the table."""
        left = ", ".join(f"{number} {name}" for name, number in sorted(self.found.items()))
        found = f"{self.kills:>4} kills, {len(self.wrong)} wrong, left: {left or 'nothing'}"
        return f"{what:<9} {victim:<11} {found}"


class Place(Enclosure):
    """Runs of a kernel in a place of their own, which are killed."""

    def __init__(self, directory: Path, kernel: str) -> None:
        super().__init__(directory)
        if kernel != "model":
            self.take_kernels()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A run in a session of its own."""
        leash = (sys.executable, "-I", "-S", LEASH, str(os.getpid()))
        return subprocess.Popen(
            [*leash, *UEVT, "run", *arguments],
            cwd=ROOT,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """A run to its end: exit code and what it complained of."""
        with self.start(*arguments) as process:
            _, said = process.communicate(timeout=_PATIENCE_S)
        return process.returncode, said.decode()


def shown(directory: Path) -> dict[str, Any]:
    """What a run came to, less what no two runs have in common."""
    results = json.loads((directory / "results.json").read_text())
    cases = {}
    for case in results["cases"]:
        if case["id"] in cases:
            raise AssertionError(f"{case['id']} is counted twice")
        cases[case["id"]] = {**case, "duration_s": 0, "rerun": None}
        for name in ("model", "kernel", "console", "steps"):
            # Names, addresses and times differ.
            case["evidence"][name] = ""
    summary = {name: value for name, value in results["summary"].items() if name != "duration_s"}
    return {"kernel": results["kernel"], "cases": cases, "summary": summary}


def victim(place: Place, leader: int, kind: str) -> list[int]:
    """Whom to kill: processes, or (negative) their group."""
    if kind == "group":
        return [-leader]
    if kind == "controller":
        return [leader]
    mark = {"worker": "uevt gw", "qemu": "qemu-system"}[kind]
    found = [pid for pid in place.processes() if called(pid).startswith(mark)]
    return random.sample(found, 1) if found else []


def called(pid: int) -> str:
    """What the kernel calls a process; a leash is not called like the QEMU that it will be."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def kill(place: Place, process: subprocess.Popen[bytes], kind: str, after_s: float) -> bool:
    """Kill after some seconds; whether there was anything to kill."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    return any(map(gone, victim(place, process.pid, kind)))


def gone(pid: int) -> bool:
    """Kill a process, or (negative) a group; whether it was there."""
    try:
        (os.killpg if pid < 0 else os.kill)(abs(pid), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def runs(arguments: argparse.Namespace, place: Place) -> Iterator[tuple[str, Tally]]:
    """Kill runs of one kernel, and go on with each until it ends by itself."""
    what = [f"--kernel={arguments.kernel}", *arguments.options]
    began = time.monotonic()
    undisturbed = place.directory / "undisturbed"
    code, said = place.run(*what, f"--out={undisturbed}")
    # The second time all is compiled, and states are saved.
    began = time.monotonic()
    expected_code, said = place.run(*what, f"--out={undisturbed}", "--force")
    takes_s = time.monotonic() - began
    expected = shown(undisturbed)
    sys.stdout.write(f"undisturbed: {len(expected['cases'])} cases in {takes_s:.1f} s, {code}\n")
    for kind in arguments.victim:
        tally = Tally()
        while tally.kills < arguments.kills:
            out = place.directory / f"{kind}-{tally.kills}"
            try:
                once(arguments, place, kind, out, takes_s, tally)
                code, said = place.run(f"--resume={out}", *what)
                found = shown(out)
                if found != expected:
                    raise AssertionError(difference(expected, found))
                if code != expected_code:
                    raise AssertionError(f"exit code {code}, not {expected_code}: {said}")
            except (AssertionError, OSError) as error:
                tally.wrong.append(f"{out.name}: {error}")
                sys.stdout.write(f"WRONG {out}: {error}\n")
                continue
            tally.found.update(f"then {each.split('-')[0]}" for each in place.left())
            shutil.rmtree(out)
        yield kind, tally


def once(
    arguments: argparse.Namespace,
    place: Place,
    kind: str,
    out: Path,
    takes_s: float,
    tally: Tally,
) -> None:
    """One run that is killed, and perhaps killed again as it goes on."""
    what = [f"--kernel={arguments.kernel}", *arguments.options]
    for _ in range(random.choice((1, 1, 2))):
        with place.start(f"--resume={out}", *what) as process:
            killed = kill(place, process, kind, random.uniform(0, takes_s))
            if kind in ("worker", "qemu"):
                # The rest goes on without it.
                process.communicate(timeout=_PATIENCE_S)
            else:
                process.wait(_PATIENCE_S)
        tally.kills += killed
        tally.found.update(each.split("-")[0] for each in place.left())


def difference(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """What two runs do not have in common."""
    for name in ("kernel", "summary"):
        if expected[name] != found[name]:
            return f"{name}: {expected[name]} and {found[name]}"
    ids = expected["cases"].keys() ^ found["cases"].keys()
    if ids:
        return f"{len(ids)} cases are in one run only: {sorted(ids)[:3]}"
    wrong = [each for each in expected["cases"] if expected["cases"][each] != found["cases"][each]]
    one = found["cases"][wrong[0]]
    return f"{len(wrong)} cases differ, as {wrong[0]}: {one['outcome']} {one['reason']}"


@contextmanager
def a_place(kernel: str) -> Iterator[Place]:
    """A place that is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="uevt-kills-") as directory:
        yield Place(Path(directory), kernel)


def main(argv: Sequence[str] | None = None) -> int:
    """Kill, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.kills")
    parser.add_argument("--kernel", default="model")
    parser.add_argument("--kills", type=int, default=20, help="of each kind of victim")
    parser.add_argument("--victim", action="append", choices=VICTIMS)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("options", nargs="*", help="more for uevt run, behind --")
    arguments = parser.parse_args(argv)
    random.seed(arguments.seed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments.victim = arguments.victim or list(VICTIMS[: 2 if arguments.kernel == "model" else 4])
    wrong = 0
    with a_place(arguments.kernel) as place:
        for kind, tally in runs(arguments, place):
            sys.stdout.write(f"{tally.line(arguments.kernel, kind)}\n")
            sys.stdout.flush()
            wrong += len(tally.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
