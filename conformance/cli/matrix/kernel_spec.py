"""A kernel of a matrix, and how to judge it: all that a worker has to be sent."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conformance.session.options import command_words, default_options, fill_missing
from conformance.session.target.target import MODEL, check, check_abi, request_of
from host.temporary_directories import scratch
from kernels.catalog.entries import KernelEntry
from kernels.errors import UserMistake
from kernels.patches.series import file_of
from kernels.request import Request


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A kernel by its id, and the options of `uevt run` that judge it.

    ``files`` are the contents of its patches and fragments by their names in ``words``, ``digest``
    is that of its entry (empty for the model).  ``tree`` is the directory of its source on the
    machine of the controller.
    """

    id: str
    words: tuple[str, ...]
    files: Mapping[str, bytes]
    digest: str
    flavour: str | None = None
    tree: Path | None = None
    ref: str | None = None

    @property
    def is_model(self) -> bool:
        """Whether this is a self-check."""
        return self.id == MODEL

    @contextmanager
    def options(self) -> Iterator[list[str]]:
        """The options on this machine, with the files in a scratch directory."""
        with scratch() as directory:
            copies = {}
            for number, (name, content) in enumerate(self.files.items()):
                # The name is part of the kernel id.
                copies[name] = directory / str(number) / Path(name).name
                copies[name].parent.mkdir()
                copies[name].write_bytes(content)
            yield [_moved(word, copies) for word in self.words]

    def entry(self, words: Sequence[str]) -> KernelEntry:
        """The entry on this machine, by ``options``.

        Raises UserMistake if it is another one here, and what `Request.entry` raises.
        """
        entry = _request(words).entry()
        if entry.digest() != self.digest:
            what = f"{self.id} is another kernel than when the matrix began"
            raise UserMistake(what, "keep trees, and use one revision of the suite everywhere")
        return entry


def specified(options: Namespace) -> KernelSpec:
    """The kernel of the options of a run.  Raises KernelsError."""
    check(options)
    words = command_words(options)
    if options.kernel == MODEL:
        return KernelSpec(MODEL, words, {}, "")
    entry = request_of(options).entry()
    if options.abi is None:
        check_abi(entry)
    names = [file_of(name) for name in (*options.patch, *options.config)]
    return KernelSpec(
        entry.kernel_id,
        words,
        {name: Path(name).read_bytes() for name in names},
        entry.digest(),
        options.flavour,
        entry.source.tree,
        options.ref,
    )


def options_of(words: Sequence[str]) -> Namespace:
    """The options of a run that these words name.  Raises ValueError."""
    options = default_options(kernel=None, keyword=None)
    fill_missing(options, words)
    return options


def _request(words: Sequence[str]) -> Request:
    return request_of(options_of(words))


def _moved(word: str, copies: Mapping[str, Path]) -> str:
    """An option with the name of a copy instead of its file."""
    option, _, value = word.partition("=")
    name = file_of(value)
    return f"{option}={copies[name]}{value[len(name) :]}" if name in copies else word
