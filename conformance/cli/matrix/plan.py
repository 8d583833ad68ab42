"""What a matrix judges: by its options, and as written down in its directory."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from msgspec import Struct

from conformance.cli.cases import select
from conformance.cli.matrix.kernel_spec import KernelSpec, options_of, specified
from conformance.results.directory import claim, require_empty
from conformance.results.errors import ReportError
from conformance.results.files import read_json
from conformance.results.results_json import NAME
from conformance.session.options import apply_defaults, default_options, make_absolute
from host.files import write_atomically
from kernels.errors import UserMistake

# Options of `uevt run` for every kernel.
_OF_RUN = (
    *("keyword", "tier", "abi", "fail_on"),
    *("tree", "ref", "patch", "config", "flavour", "append"),
)
_STATE = "matrix.json"
_LOCK = ".matrix.lock"


class Plan(Struct, frozen=True):
    """The kernels of a matrix, those that are left, and the number of shards if it was given.

    ``kernels`` are words and digest of each by its id.
    """

    directory: Path
    kernels: Mapping[str, Mapping[str, Any]]
    left: Sequence[KernelSpec]
    shards: int | None

    @property
    def is_written(self) -> bool:
        """Whether the matrix can be resumed."""
        return _file(self.directory).is_file()

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write it down, for --resume; until the end no other matrix may use the directory.

        Raises ReportError for an unusable directory, OSError.
        """
        claim(self.directory, resume=True)
        with ExitStack() as held:
            try:
                lock = self.directory / _LOCK
                held.enter_context(FileLock(lock, blocking=False))
                # Before it is released; FileLock detects an unlinked lock and opens a new one.
                held.callback(lock.unlink, missing_ok=True)
            except Timeout:
                hint = "wait for it to end, or name another directory"
                raise ReportError(self.directory, "is in use by another matrix", hint) from None
            state = {"kernels": dict(self.kernels), "shards": self.shards}
            write_atomically(_file(self.directory), json.dumps(state, indent=1) + "\n")
            yield


def planned(arguments: argparse.Namespace) -> Plan:
    """The plan of a new matrix.  Raises KernelsError, ReportError, OSError."""
    if not arguments.kernels and arguments.tree is None:
        raise UserMistake("no kernel named", "name some: uevt matrix 6.1 6.12 --out DIR")
    if arguments.out is None:
        raise UserMistake("no --out", "name a directory: --out results/matrix")
    directory = Path(arguments.out).absolute()
    _require_new(directory)
    specs = {}
    for name in arguments.kernels or [None]:
        given = {option: getattr(arguments, option) for option in _OF_RUN}
        options = default_options(kernel=name, **given)
        make_absolute(options)
        apply_defaults(options)
        spec = specified(options)
        specs[spec.id] = spec
        _require_cases(options)
    kernels = {id: {"words": spec.words, "digest": spec.digest} for id, spec in specs.items()}
    return Plan(directory, kernels, list(specs.values()), arguments.shards)


def recalled(arguments: argparse.Namespace) -> Plan:
    """The plan of a matrix that is resumed.  Raises KernelsError, ReportError, OSError."""
    directory = Path(arguments.resume).absolute()
    others = ("kernels", "out", "shards", *_OF_RUN)
    if any(getattr(arguments, name) for name in others):
        raise UserMistake("--resume takes kernels and options from DIR", "leave out the others")
    file = _file(directory)
    if not file.is_file():
        raise ReportError(directory, "has no matrix to resume", "name the --out of uevt matrix")
    left = []
    try:
        state = read_json(file)
        kernels = dict(state["kernels"])
        for name, known in kernels.items():
            if not (directory / name / NAME).is_file():
                left.append(specified(options_of(known["words"])))
                if (left[-1].id, left[-1].digest) != (name, known["digest"]):
                    what = f"has {name} with another patch, configuration or source"
                    raise ReportError(directory, what, "restore that, or start a new matrix")
        return Plan(directory, kernels, left, state["shards"])
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError.malformed(file, "is not the state of a matrix") from error


def _file(directory: Path) -> Path:
    return directory / _STATE


def _require_new(directory: Path) -> None:
    """Raise ReportError for a directory with files."""
    if _file(directory).is_file():
        hint = f"continue it: uevt matrix --resume {directory}; or name another --out"
        raise ReportError(directory, "has a matrix already", hint)
    require_empty(directory)


def _require_cases(options: argparse.Namespace) -> None:
    """Refuse a -k that selects nothing on any kernel: it takes no build to know.

    Raises UserMistake.
    """
    if options.keyword and not select(options.keyword, None, options.tier):
        hint = "-k matches parts of case ids"
        if options.tier != "full":
            hint += "; most cases need --tier full"
        what = f"nothing selected: no case matches -k {options.keyword!r} and tier {options.tier}"
        raise UserMistake(what, hint)
