"""Command lines of programs that trace an event: start, stop, and report."""

from msgspec import Struct

from conformance.client.programs import Programs
from conformance.ops import Observation, Tracer

# A program that ends before it is {ready} shows why.
_START = """: > output
{command} >> output 2>&1 &
echo $! > tool
until {ready}; do kill -0 $! 2> /dev/null || {{ cat output; exit 1; }}; sleep .1; done"""
# SIGINT, as from a user.  Process 1 reaps the program.  bpftrace 0.17 misses a signal that arrives
# while it does not wait for records: after 10 s there is a second one.
_STOP = """read tool < tool
while kill -INT $tool 2> /dev/null; do
for wait in $(seq 100); do kill -0 $tool 2> /dev/null || break; sleep .1; done; done"""
# What becomes of a record: the writer and the time are replaced.
_WRITER = "s/^ *$comm *-*$pid  *\\(\\[000\\] *[0-9.]*: *\\)*/WRITER /; s/user_events://; s/: *$/:/"
# perf opens its events disabled; it acknowledges when it has enabled them.
_OPENED = "grep -q 'Events disabled' output"
_ENABLED = f"{_OPENED} && {{ echo enable > control; grep -q ack ack; }}"
_CONTROL = "mkfifo control ack && exec 3<> control 4<> ack && exec"


class Consumer(Struct, frozen=True):
    """A program in lines of sh; ``{event}`` and ``{filter}`` are filled in."""

    tracer: Tracer
    command: str
    ready: str
    report: str
    #: The option that filters.
    filter: str = ""

    def start(
        self, programs: Programs, name: str, filter: str = "", *, refused: str = ""
    ) -> Observation:
        """Start it, and wait until it is ready; ``refused`` is what it prints if it fails."""
        chosen = f"{self.filter} '{filter}'" if filter else ""
        command = self.command.format(event=f"user_events:{name}", filter=chosen)
        line = _START.format(command=command, ready=self.ready)
        if refused:
            return programs.run(line, refused, status=1)
        return programs.run(line, event=name, attach=self.tracer)

    def stop(self, programs: Programs, name: str) -> None:
        """End it."""
        programs.run(_STOP, event=name, detach=self.tracer)

    def shows(self, programs: Programs, prints: str) -> str:
        """Its report."""
        return programs.run(self.report, prints).text


_PERF_SCRIPT = (
    "perf script -i perf.data --show-lost-events -F comm,pid,event,trace 2> /dev/null | "
    f'sed "{_WRITER}"'
)
_STOPPED = "-D -1 --control fd:3,4 -a -e {event}"
_PERF_RECORD = f"{_CONTROL} perf record {_STOPPED} {{filter}} -o perf.data"
PERF = Consumer(Tracer.PERF, _PERF_RECORD, _ENABLED, _PERF_SCRIPT, "--filter")
# perf that has not enabled its events yet.
PERF_OPENED = Consumer(Tracer.PERF, _PERF_RECORD, _OPENED, _PERF_SCRIPT)
PERF_STAT = Consumer(
    Tracer.PERF,
    f"{_CONTROL} perf stat -x ' ' {_STOPPED}",
    _ENABLED,
    "grep user_events: output | cut -d ' ' -f 1",
)
# In a pipe or file trace-cmd would print that it records when it ends.
TRACE_CMD = Consumer(
    Tracer.FTRACE,
    "exec stdbuf -oL trace-cmd record -e {event} {filter} -o trace.dat",
    "grep -q 'Hit Ctrl^C' output",
    f'trace-cmd report -i trace.dat 2>&1 | sed "/^cpus=/d; {_WRITER}; s/:  */: /"',
    "-f",
)
_USED = "grep -q 'Used by perf' /sys/kernel/tracing/user_events_status"
# Twice: it opens the perf event before it sets the program.
BPFTRACE = Consumer(
    Tracer.PERF,
    "exec bpftrace -e 'tracepoint:{event} {{ printf(\"ran\\n\"); }}'",
    f"{_USED} && sleep 1 && {_USED}",
    "cat output",
)
