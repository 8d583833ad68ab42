"""Examples of each command: for its help, for docs/cli.md and for the manual page."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "uevt doctor": (("uevt doctor", "what the host lacks, and whether KVM works"),),
    "uevt kernels list": (("uevt kernels list", "built, buildable, and why the others are not"),),
    "uevt kernels build": (("uevt kernels build 6.12", "fetch, unpack, configure and compile it"),),
    "uevt kernels source": (("cd $(uevt kernels source 6.12)", "where to read, not to edit"),),
    "uevt kernels gc": (("uevt kernels gc --keep 20G", "remove the least recently used"),),
    "uevt run": (
        ("uevt run --kernel 6.12", "the quick tier on a kernel of the catalog"),
        ("uevt run --kernel 6.12 --tier full -k write.", "all cases of one surface"),
        ("uevt run --kernel 6.12 --patch fix.diff --against base", "what a patch changes"),
        ("uevt run --tree linux --ref my-branch", "a branch of a tree, which is only read"),
        ("uevt run --image bzImage --modules lib/modules/6.12.30", "an image built elsewhere"),
        ("uevt run --kernel 6.12 --shard 1/3", "a third of the cases"),
        ("uevt run --resume results/6.12/latest", "continue a killed run"),
    ),
    "uevt shell": (
        ("uevt shell --kernel 6.12", "a shell; the working directory is /host"),
        ("uevt shell --kernel 6.12 --patch bug.diff -- ./program", "one program, its exit code"),
        ("uevt shell --kernel 6.12 -- 'dmesg | tail'", "one word is a line for sh"),
        ("uevt shell --kernel 6.12 --gdb", "and the command that attaches gdb"),
    ),
    "uevt client": (
        ("uevt client --kernel 6.12 -- ./program --option", "judge the calls of a program"),
        ("uevt client --kernel 6.12 --listener perf -- ./program", "with perf as the listener"),
        ("uevt client --kernel 6.12 --patch fix.diff -- 'make check'", "one word is a line for sh"),
    ),
    "uevt cases": (
        ("uevt cases -k unregister", "sentence, level and source line"),
        ("uevt cases --kernel 6.1 --json", "all that is declared, for programs"),
        ("uevt cases --kernel 6.12 --runtest 'uevt run --kernel 6.12'", "a suite for kirk"),
    ),
    "uevt selftests": (("uevt selftests --kernel 6.12", "upstream's tests beside our cases"),),
    "uevt explore": (
        ("uevt explore --kernel 6.12 --time 600", "random programs for ten minutes"),
        ("uevt explore --kernel 6.12 --seed 1f2e3d4c --count 5000", "the same programs again"),
    ),
    "uevt repro": (
        ("uevt repro write.returns_all_bytes --out repro.c", "a case as a C program"),
        ("uevt repro results/6.12/latest -k unregister.clears_the_bit", "with what was observed"),
    ),
    "uevt bundle": (
        ("uevt bundle results/6.12/latest -k unregister.clears_the_bit --out f.json", "to send it"),
    ),
    "uevt replay": (("uevt replay f.json --kernel 6.12 --kernel 7.3", "which kernels have it"),),
    "uevt compare": (("uevt compare results/6.12 results/6.12+fix", "two kernels"),),
    "uevt merge": (("uevt merge shards --out results/6.12/merged", "of the runs below shards"),),
    "uevt matrix": (
        ("uevt matrix 6.1 6.12 7.3 --out results/matrix", "on the processors of this machine"),
        ("uevt matrix 6.1 6.12 --patch fix.patch --out results/fix", "each with a patch"),
        ("uevt matrix --resume results/matrix", "continue after a crash"),
    ),
    "uevt worker": (("uevt worker tcp://127.0.0.1:8786", "for a scheduler on this machine"),),
    "uevt report": (("uevt report results --html report.html", "all runs on one page"),),
    "uevt history": (("uevt history write.returns_all_bytes", "since when a case fails"),),
    "uevt export": (("uevt export results/6.12/latest --format junit", "for a CI system"),),
    "uevt pull-lab": (
        ("uevt pull-lab job.json --out results/job --origin mylab", "a job of KernelCI"),
    ),
    "uevt bisect": (
        (
            "uevt bisect --tree linux --good v6.12 --bad HEAD --case write.returns_all_bytes",
            "the commit that broke a case",
        ),
    ),
    "uevt completion": (("source <(uevt completion bash)", "complete in this shell"),),
}
"""Command lines and what they do, by command."""


def epilog(prog: str) -> str:
    """The end of the help of a command; "" without examples."""
    shown = [f"  {line}\n      {about}" for line, about in EXAMPLES.get(prog, ())]
    return "\n".join(["examples:", *shown]) if shown else ""
