"""What a guest performs for test_here.py: runs of --here, disturbed ones among them.

Prints a line of JSON for each step: its name, what the run printed, its exit code, and how the
state of the system differs from that before all runs.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

# A run is forked from this process, which has imported what it needs: starting Python takes half
# of a short run here.
import conformance.cli.client
import conformance.report.matrix.findings
import conformance.report.matrix.html
import conformance.session.controller.controller
import conformance.session.plugin
import conformance.session.worker.here_guest  # noqa: F401
from conformance.cli.main import main as uevt
from conformance.session.__main__ import main as session
from host.deadline import Deadline

# What `uevt run --here` is, for some files: collecting all takes most of the time of a short run.
_PYTEST = (
    *("-c", "pyproject.toml", "--noconftest", "-p", "uevt", "--tb=no", "--assert=plain", "-s"),
    *("-p", "no:terminalreporter", "-p", "no:cacheprovider", "--here", "--tier=full"),
)
_FILES = (
    *("control_files/test_pid_filter", "dated/test_instances", "instances/test_instance"),
    *("permissions/test_mounts", "permissions/test_superblock", "registration/test_limits"),
    *("triggers/test_eprobe", "write/test_write"),
)
RUN = (*_PYTEST, *(f"conformance/cases/{name}.py" for name in _FILES))
TRACING = Path("/sys/kernel/tracing")
STATE = Path("/run/uevt/state.json")
# Names of processes that tracing has seen, and files that block or that opening empties.
NO_SETTINGS = ("saved_", "trace_pipe", "trace_marker", "snapshot", "free_buffer")
# Cases that change settings, modes, mounts, instances and probes, and one that is skipped.
SELECTED = (
    "write.returns_all_bytes or rights.mount_options or dated.remount_keeps_mode or "
    "instance.multi_format or eprobe.holds_the_event or "
    "empty_cpumask_refused or pid_filter.no_number or rights.superblock_deletes"
)
# The test knows how slow this guest is.
LIMIT = Deadline(float(sys.argv[1]), "end of the scenario")
_FORK = multiprocessing.get_context("fork")


def settings() -> dict[str, str]:
    """Text, mode and owner of the settings, and the user events."""
    found = {}
    files = [*TRACING.iterdir(), *(TRACING / "options").iterdir()]
    files += [*Path("/proc/sys/kernel").iterdir()]
    for file in sorted(files):
        if file.is_file() and not file.name.startswith(NO_SETTINGS):
            status = file.stat()
            found[str(file)] = f"{status.st_mode:o} {status.st_uid}:{status.st_gid} {text(file)}"
    for directory in ("instances", "events/user_events", "events/user_events_multi"):
        place = TRACING / directory
        found[directory] = (
            " ".join(sorted(each.name for each in place.iterdir())) if place.is_dir() else ""
        )
    found["mounts"] = Path("/proc/self/mounts").read_text()
    return found


def text(file: Path) -> str:
    """The text of a file that does not block."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return str(error.errno)
    try:
        return os.read(descriptor, 1 << 16).decode(errors="replace")
    except OSError as error:
        return str(error.errno)
    finally:
        os.close(descriptor)


def differences(before: dict[str, str], after: dict[str, str]) -> dict[str, list[str]]:
    return {
        name: [before.get(name, "-"), after.get(name, "-")]
        for name in {*before, *after}
        if before.get(name) != after.get(name) and name not in VOLATILE
    }


# What the kernel itself counts.
VOLATILE = {f"/proc/sys/kernel/{name}" for name in ("ns_last_pid", "random", "pty")}


class Run:
    """A command, begun: a run of some files, or another."""

    def __init__(self, *words: str, command: Callable[[list[str]], int] = session) -> None:
        self._printed = Path(tempfile.mkdtemp())
        begin = RUN if command is session else ()
        self.process: ForkProcess = _FORK.Process(
            target=self._perform, args=(command, [*begin, *words])
        )
        self.process.start()

    def _perform(self, command: Callable[[list[str]], int], words: list[str]) -> None:
        for number, name in ((1, "out"), (2, "errors")):
            os.dup2(os.open(self._printed / name, os.O_CREAT | os.O_WRONLY), number)
        sys.exit(command(words))

    def signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def end(self) -> dict[str, Any]:
        """Its code and what it printed."""
        self.process.join(LIMIT.remaining())
        assert self.process.exitcode is not None, "the run does not end"
        printed = {each.name: each.read_text() for each in self._printed.iterdir()}
        return {"code": self.process.exitcode, **printed}


def finished(*words: str) -> dict[str, Any]:
    return Run(*words).end()


def disturbed(number: int, directory: str) -> dict[str, Any]:
    """A run that gets a signal after its first cases."""
    run = Run("-k", SELECTED, "--out", directory)
    journal = Path(directory, "journal.jsonl")
    while not journal.exists() or journal.read_text().count('"event": "case"') < 4:
        assert run.process.exitcode is None, run.end()
        LIMIT.pause(0.05)
    second = {}
    if number == signal.SIGKILL:
        # It holds the system, and does not end meanwhile.
        run.signal(signal.SIGSTOP)
        second = finished("-k", "write.")
    run.signal(number)
    ended = run.end()
    patience = LIMIT.child(LIMIT.seconds / 20, "end of the agents")
    while agents() and not patience.expired:
        time.sleep(0.05)
    return {**ended, "second": second, "state": STATE.exists(), "agents": agents()}


def agents() -> int:
    """The number of processes of the agent."""
    lines = [text(file) for file in Path("/proc").glob("[0-9]*/cmdline")]
    return sum("vm/guest/here.py" in line for line in lines)


def main() -> None:
    # The first use of tracing gives the buffer its size.
    (TRACING / "set_event").write_text("\n")
    # What somebody has chosen who does not trace now.
    (TRACING / "options/stacktrace").write_text("1")
    before = settings()

    def emit(name: str, run: dict[str, Any]) -> None:
        step = {"step": name, **run, "changed": differences(before, settings())}
        sys.stdout.write(f"{json.dumps(step)}\n")
        sys.stdout.flush()

    emit("interrupted", disturbed(signal.SIGINT, "/tmp/interrupted"))
    killed = disturbed(signal.SIGKILL, "/tmp/killed")
    leave_like_a_case()
    emit("killed", killed)
    resumed = finished("-k", SELECTED, "--resume", "/tmp/killed")
    emit("resumed", with_outcomes(resumed, "/tmp/killed"))
    emit("client", Run("client", "--here", "--", "/host/parts", command=uevt).end())
    create_event("u:somebody u32 a")
    before = settings()
    emit("foreign", finished("-k", "write."))
    selected = "write.returns_all_bytes.u8 or limits.shared"
    run = finished("-k", selected, "--even-so", "--out", "/tmp/even_so")
    emit("even_so", with_outcomes(run, "/tmp/even_so"))


def with_outcomes(run: dict[str, Any], directory: str) -> dict[str, Any]:
    """A run with the outcome and the reason of each case."""
    file = Path(directory, "results.json")
    results = json.loads(file.read_text()) if file.exists() else {"cases": []}
    cases = {case["id"]: [case["outcome"], case["reason"]] for case in results["cases"]}
    return {**run, "outcomes": cases}


def leave_like_a_case() -> None:
    """What a case leaves that is killed in its middle."""
    (TRACING / "tracing_on").write_text("0")
    Path("/proc/sys/kernel/user_events_max").write_text("5")
    (TRACING / "user_events_data").chmod(0o666)
    (TRACING / "instances/t00001_i").mkdir()
    create_event("u:t00001_e u32 a")
    (TRACING / "events/user_events/t00001_e/trigger").write_text("traceoff")


def create_event(definition: str) -> None:
    descriptor = os.open(TRACING / "dynamic_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, f"{definition}\n".encode())
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main()
