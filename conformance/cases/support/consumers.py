"""Command lines of programs that trace an event: start, stop, and report."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.client.programs import Programs
from conformance.ops import Observation, Tracer

# End the program $tool, and wait for it: init reaps it.
_STOP = "kill -INT $(cat tool); while kill -0 $(cat tool) 2> /dev/null; do sleep .1; done"
# Wait until {ready}; a program that ends before shows why.
_START = """{command} > output 2>&1 &
echo $! > tool
until {ready}; do kill -0 $! 2> /dev/null || {{ cat output; exit 1; }}; sleep .1; done"""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A program, by its lines of sh; ``{event}`` and ``{filter}`` are filled in."""

    command: str
    ready: str
    report: str
    tracer: Tracer
    #: The option that filters, with ``{}`` for the filter.
    filter: str = ""

    def start(self, programs: Programs, name: str, filter: str = "", *, prints: str = "") -> None:
        """Start it, and wait until it records."""
        chosen = self.filter.format(filter) if filter else ""
        command = self.command.format(event=f"user_events:{name}", filter=chosen)
        line = _START.format(command=command, ready=self.ready)
        programs.run(line, prints, event=name, attach=self.tracer)

    def stop(self, programs: Programs, name: str) -> None:
        """End it with SIGINT, as a user does."""
        programs.run(_STOP, event=name, detach=self.tracer)

    def shows(self, programs: Programs, prints: str) -> Observation:
        """What it reports."""
        return programs.run(self.report, prints)


# perf opens its events before it enables them, so it is enabled by command, which it acknowledges.
PERF = Consumer(
    "mkfifo control ack && exec 3<> control 4<> ack && "
    "exec perf record -D -1 --control fd:3,4 -a -e {event} {filter} -o perf.data",
    "grep -q 'Events disabled' output && { echo enable > control; grep -q ack ack; }",
    "perf script -i perf.data --show-lost-events -F comm,pid,event,trace 2> /dev/null | "
    'sed "s/^ *$comm *$pid user_events:/WRITER /"',
    Tracer.PERF,
    "--filter '{}'",
)
# Into a file trace-cmd would not say that it records before it ends.
TRACE_CMD = Consumer(
    "exec stdbuf -oL trace-cmd record -e {event} {filter} -o trace.dat",
    "grep -q 'Hit Ctrl^C' output",
    "trace-cmd report -i trace.dat 2>&1 | "
    'sed "/^cpus=/d; s/^ *$comm-$pid *\\[000\\] *[0-9.]*: */WRITER /; s/: */: /"',
    Tracer.FTRACE,
    "-f '{}'",
)
