"""The shards of one kernel on disk: what is judged, and what is left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from conformance.results.results_json import NAME, read_results, write_results
from conformance.results.stored_runs import Run, read_run
from host.files import TEMPORARY

_SHARDS = ".shards"


class ShardStore:
    """Directories of shards, each there as a whole or not at all."""

    def __init__(self, directory: Path, kernel: str) -> None:
        """``directory`` is that of the matrix."""
        self._directory = directory / _SHARDS / kernel

    def add(self, part: str, files: Mapping[str, bytes], worker: str, words: Sequence[str]) -> Run:
        """Store the files of a shard's run, with its worker, and its options as they were given.

        Raises ReportError for results that are none, OSError.
        """
        place = self._place(part)
        temporary = place.with_name(f"{TEMPORARY}{place.name}.{os.getpid()}")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        record = read_results(temporary / NAME)
        shards = tuple(
            replace(each, node=f"{each.node}, worker {worker}") for each in record.shards
        )
        # The worker has copies of patches.
        head = replace(record.head, asked=(*words, f"--shard={part}"))
        write_results(replace(record, head=head, shards=shards), temporary / NAME)
        shutil.rmtree(place, ignore_errors=True)
        temporary.rename(place)
        return read_run(place / NAME)

    def runs(self) -> dict[str, Run]:
        """The runs by part.  Raises ReportError."""
        files = sorted(self._directory.glob(f"[!.]*/{NAME}"))
        found = [read_run(file) for file in files]
        return {run.record.shards[0].part: run for run in found}

    def remove(self) -> None:
        """Remove all, after they were merged."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _place(self, part: str) -> Path:
        return self._directory / part.replace("/", "-of-")
