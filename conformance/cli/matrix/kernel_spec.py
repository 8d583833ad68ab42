"""A kernel of a matrix, and how to judge it: all that a worker has to be sent."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field

from conformance.session.options import command_words, default_options, fill_missing
from conformance.session.target.target import MODEL, check, check_abi, request_of
from host.files import open_regular
from host.temporary_directories import scratch
from kernels.catalog.entries import KernelEntry
from kernels.errors import BrokenFile, UserMistake
from kernels.patches.series import file_of
from kernels.store.store import Store
from kernels.trees.user_tree import note


class KernelSpec(Struct, frozen=True):
    """The options of `uevt run` that judge a kernel, and its entry (None for the model).

    ``files`` are the contents of its patches and fragments by their names in ``words``.
    """

    words: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    entry: KernelEntry | None = None
    flavour: str | None = None

    @property
    def id(self) -> str:
        """The kernel id."""
        return MODEL if self.entry is None else self.entry.kernel_id

    @property
    def digest(self) -> str:
        """The digest of the entry, empty for the model."""
        return "" if self.entry is None else self.entry.digest()

    @property
    def has_tree(self) -> bool:
        """Whether its source is a directory of the controller's machine."""
        return self.entry is not None and self.entry.source.tree is not None

    @contextmanager
    def options(self) -> Iterator[list[str]]:
        """The options on this machine, with the files in a scratch directory.

        Raises UserMistake if they name another kernel here, other KernelsError, OSError.
        """
        with scratch() as directory:
            copies = {}
            for number, (name, content) in enumerate(self.files.items()):
                # The name is part of the kernel id.
                copies[name] = directory / str(number) / Path(name).name
                copies[name].parent.mkdir()
                copies[name].write_bytes(content)
            words = [_moved(word, copies) for word in self.words]
            if self.entry is not None:
                note(self.entry, Store())
                if request_of(options_of(words)).entry().digest() != self.digest:
                    what = f"{self.id} is another kernel than when the matrix began"
                    raise UserMistake(what, "keep its tree, and one revision of the suite")
            yield words


def specified(options: Namespace) -> KernelSpec:
    """The kernel of the options of a run.  Raises KernelsError, OSError."""
    check(options)
    if options.kernel == MODEL:
        return KernelSpec(command_words(options))
    entry = request_of(options).entry()
    if options.abi is None:
        check_abi(entry)
    # A branch moves, and other machines do not have the links in the name of a directory.
    options.ref = entry.source.ref
    if entry.source.tree is not None:
        options.tree = str(entry.source.tree)
    names = [file_of(name) for name in (*options.patch, *options.config)]
    files = {name: _content(Path(name)) for name in names}
    return KernelSpec(command_words(options), files, entry, options.flavour)


def options_of(words: Sequence[str]) -> Namespace:
    """The options of a run that these words name.  Raises ValueError."""
    options = default_options(kernel=None, keyword=None)
    fill_missing(options, words)
    return options


def _content(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError as error:
        # The entry was read from it, and --resume reads it again.
        hint = "name a file that stays: a matrix reads it several times"
        raise BrokenFile(path, error.strerror or str(error), hint) from error


def _moved(word: str, copies: Mapping[str, Path]) -> str:
    """An option with the name of a copy instead of its file."""
    option, _, value = word.partition("=")
    name = file_of(value)
    return f"{option}={copies[name]}{value[len(name) :]}" if name in copies else word
