"""`python -m tests.bench [KERNEL]`: run the benchmarks; --keep updates docs/performance.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial

from conformance.abi import uapi
from conformance.client.user_events import UserEvents
from conformance.session.options import default_options
from conformance.session.target.target import Target, resolve
from host.text import counted
from tests.bench import guests
from tests.bench.edits import edited_kernel
from tests.bench.growth import cost
from tests.bench.measure import Pair, keep, pair, table

FILE = guests.ROOT / "docs" / "performance.md"


def _refused_ioctl(ue: UserEvents) -> Callable[[], object]:
    """A system call of a process with four watched words."""
    process = ue.process
    data = process.open_data()
    for _ in range(4):
        process.word()
    # The first operation takes processes from the pool.
    assert data.ioctl(uapi.DIAG_IOCSREG, 0).errno == "EFAULT"
    ue.lockstep.catch_up()
    return lambda: data.ioctl(uapi.DIAG_IOCSREG, 0)


def main() -> int:
    """Measure in pairs and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("kernel", nargs="?", default="6.12")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="write docs/performance.md")
    arguments = parser.parse_args()
    target = resolve(default_options(kernel=arguments.kernel))
    found = []
    for each in _pairs(target, arguments.kernel, arguments.rounds):
        found.append(each)
        sys.stdout.write(f"{each.what}: {each.median:.3g} {each.unit}, {each.ratio:.3f}\n")
        sys.stdout.flush()
    text = f"{counted(arguments.rounds, 'round')}:\n\n{table(found)}"
    sys.stdout.write(text)
    if arguments.keep:
        keep(FILE, "measured", text)
    return 0


def _pairs(target: Target, kernel: str, rounds: int) -> Iterator[Pair]:
    image = target.image
    assert image is not None
    compare = partial(pair, rounds=rounds)
    one = "--kernel", kernel
    # Warm up: save a snapshot and compile the cases.
    guests.run(*one)

    boots = "`vng … -- true`", partial(guests.vng, image, "true")

    def quick_run() -> float:
        return guests.run(*one)[1]

    yield compare("a guest's first answer", partial(guests.first_answer, target), *boots)
    yield compare("`uevt run`: first result", lambda: guests.run(*one)[0], *boots)
    tree = guests.tree_of(kernel)
    with guests.selftests(tree) as command:
        selftests = partial(guests.vng, image, command)
        upstream = "upstream's selftests in vng", selftests
        yield compare("`uevt run`, quick tier", quick_run, *upstream)
        full = "--tier", "full"
        yield compare("`uevt run`, full tier", lambda: guests.run(*one, *full)[1], *upstream)
        model = "--kernel", "model"
        yield compare("full tier on the model", lambda: guests.run(*model, *full)[1], *upstream)
        with edited_kernel(target, tree) as edited:
            made = "build of `bzImage`, selftests in vng", partial(edited.made, command)
            yield compare("edit to quick verdict", edited.judged, *made)
    # Apart from the durations, which sampling would lengthen.
    costs = [cost(*one, *full) for _ in range(rounds)]
    of_host = tuple(each.cpu_s - each.guest_cpu_s for each in costs)
    of_all = tuple(each.cpu_s for each in costs)
    yield Pair(
        "full tier: CPU time outside the guests", "CPU time of the run", "s", of_host, of_all
    )
    yield compare(
        "`uevt run --isolation case`",
        lambda: guests.run(*one, "--isolation", "case")[1],
        "`uevt run`",
        quick_run,
    )
    with guests.lockstep_guest(target) as (ue, getpid):
        refused = partial(guests.per_call, _refused_ioctl(ue))
        ping = "a bare ping", partial(guests.per_call, getpid)
        yield compare("a refused ioctl, in lock step", refused, *ping, unit="ms")
    with guests.lockstep_guest(target, ahead=True) as (ue, getpid):
        refused = partial(guests.amortised, _refused_ioctl(ue), ue.lockstep.catch_up)
        ping = "a bare ping", partial(guests.per_call, getpid)
        yield compare("a refused ioctl, predicted", refused, *ping, unit="ms")
    own = "512 MiB of a guest's own", lambda: 537.0
    yield compare("memory of a guest", partial(guests.resident, target), *own, unit="MB")


if __name__ == "__main__":
    sys.exit(main())
