"""Split a selection into shards of equal duration, the same on every machine.

The split depends on the ids, on the hash of an id, and on the durations in durations.toml, which is
part of the suite: not on what this machine remembers of earlier runs.
``python -m conformance.session.shards [KERNEL]`` writes the file from a run of the full tier.
"""

from __future__ import annotations

import hashlib
import platform
import sys
import tomllib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from conformance.cases.discovery import all_cases
from conformance.results.shard import Shard, digest_of_ids, path
from conformance.session.ordering import UNKNOWN_S, Durations
from host.files import write_atomically
from host.text import counted
from kernels.errors import UserMistake
from kernels.store.store import default_root

_FILE = Path(__file__).with_name("durations.toml")
#: Cases that take less are not in the file.
_SHORTEST_S = 0.5
_HEAD = """\
# Seconds of the cases that take longer than {shortest:g} s, as measured on {kernel} without KVM.
# Shards are balanced by them.  Written by python -m conformance.session.shards.
"""


@cache
def measured() -> Mapping[str, float]:
    """Seconds of the long cases by id."""
    return {id: float(s) for id, s in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()}


def seconds_of(ids: Iterable[str]) -> float:
    """The estimated duration of cases on one guest, in seconds."""
    return sum(measured().get(id, UNKNOWN_S) for id in ids)


def split(ids: Collection[str], number: int) -> list[list[str]]:
    """The ids in so many shards: the longest first, each to the shard with the least to do."""
    known = measured()
    shards: list[list[str]] = [[] for _ in range(number)]
    loads = [0.0] * number

    def key(id: str) -> tuple[float, str]:
        # Variants of one function are alike: their hashes distribute them.
        return -known.get(id, UNKNOWN_S), hashlib.sha256(id.encode()).hexdigest()

    for id in sorted(ids, key=key):
        least = min(range(number), key=lambda n: (loads[n], n))
        shards[least].append(id)
        loads[least] += known.get(id, UNKNOWN_S)
    return shards


def shard(part: str, ids: Collection[str]) -> Shard:
    """The shard of this name of a selection.  Raises UserMistake if there are too few cases."""
    found = list(ids)
    for number, of in path(part):
        if of > len(found):
            cases = counted(len(found), "case")
            what = f"--shard {part}: the selection has {cases} for {of} shards"
            raise UserMistake(what, "make fewer shards, or select more cases")
        found = split(found, of)[number - 1]
    return Shard(part, tuple(sorted(found)), len(ids), digest_of_ids(ids), platform.node())


def main(kernel: str) -> None:
    """Write durations.toml from what this machine remembers of a kernel."""
    found = Durations(default_root(), kernel).read()
    cases = {case.id for case in all_cases()}
    lines = [
        f'"{id}" = {s:.1f}\n'
        for id, s in sorted(found.items())
        if s >= _SHORTEST_S and cases & {id, id.rpartition(".")[0]}
    ]
    head = _HEAD.format(shortest=_SHORTEST_S, kernel=kernel)
    write_atomically(_FILE, head + "".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["6.12"])
