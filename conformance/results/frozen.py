"""A frozen list of cases, by which the numbers of two runs of different suites compare.

The suite grows between releases.  A list has the cases of one version, with the digests of the
programs that its published runs (docs/results) recorded: one or more, since programs differ between
generations of the ABI.  docs/frozen has the list of each version, final once that is released.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from conformance.results.case_result import CASE_ID, CaseResult
from conformance.results.errors import ReportError
from conformance.results.outcome import NO_VERDICT, Outcome
from host.files import open_regular

DOCS = Path(__file__).parents[2] / "docs"
PUBLISHED = DOCS / "frozen"
"""The lists of versions."""

_HEAD = re.compile(r"# uevt (\S+): (\d+) cases, each with the digests of its programs")
_DIGEST = re.compile("[0-9a-f]{12}")
_HINT = "write one with uevt cases --frozen, or name one of docs/frozen"


class FrozenShare(Struct, frozen=True):
    """How much of a frozen list a run judged.

    ``list`` is the version of the suite that it is from, ``sha256`` that of its text, ``listed``
    the number of its cases.  ``judged`` of them have a result that is neither SKIP nor ERROR.
    ``other_programs`` passed with a program that the list does not have: the case was edited since,
    or no published kernel has the ABI of this one.  A case that deviates ends early; its program
    is not compared.
    """

    list: str
    sha256: str
    listed: int
    judged: int
    other_programs: tuple[str, ...] = ()


class FrozenList(Struct, frozen=True):
    """The digests of the programs of each case by id, of a version of the suite."""

    version: str
    programs: Mapping[str, frozenset[str]]

    @classmethod
    def of(
        cls, version: str, ids: Iterable[str], published: Iterable[Mapping[str, str]]
    ) -> FrozenList:
        """The list of those cases that a published run has; a run gives digests by id."""
        programs: dict[str, set[str]] = {}
        for run in published:
            for id, digest in run.items():
                programs.setdefault(id, set()).update({digest} - {""})
        kept = programs.keys() & set(ids)
        return cls(version, {id: frozenset(programs[id]) for id in kept})

    @classmethod
    def read(cls, path: Path) -> FrozenList:
        """Read what ``text`` wrote.  Raises ReportError for a file that is not, or is cut off."""
        try:
            with open_regular(path) as file:
                head, *lines = file.read().decode().splitlines()
        except OSError as error:
            raise ReportError(path, error.strerror or str(error), _HINT) from error
        except ValueError as error:
            raise ReportError(path, "is no frozen list", _HINT) from error
        found = _HEAD.fullmatch(head)
        if found is None:
            raise ReportError(path, "is no frozen list: line 1 is not of one", _HINT)
        programs: dict[str, frozenset[str]] = {}
        for number, line in enumerate(lines, start=2):
            id, *digests = line.split(" ")
            valid = CASE_ID.fullmatch(id) and all(map(_DIGEST.fullmatch, digests))
            if not valid or id in programs:
                what = f"line {number} is not an id with digests, or its case is listed twice"
                raise ReportError(path, what, _HINT)
            programs[id] = frozenset(digests)
        if len(programs) != int(found[2]):
            what = f"has {len(programs)} of the {found[2]} cases that line 1 announces"
            raise ReportError(path, what, _HINT)
        return cls(found[1], programs)

    @property
    def text(self) -> str:
        """One line per case, sorted by id."""
        head = f"# uevt {self.version}: {len(self.programs)} cases, each with the digests of its"
        lines = [" ".join([id, *sorted(self.programs[id])]) for id in sorted(self.programs)]
        return "\n".join([f"{head} programs", *lines]) + "\n"

    def share(self, cases: Iterable[CaseResult]) -> FrozenShare:
        """How much of the list these results judge."""
        judged = [
            case for case in cases if case.id in self.programs and case.outcome not in NO_VERDICT
        ]
        other = tuple(
            case.id
            for case in judged
            if case.outcome is Outcome.PASS
            and case.digest
            and not case.digest.startswith(tuple(self.programs[case.id]))
        )
        digest = hashlib.sha256(self.text.encode("utf-8")).hexdigest()
        return FrozenShare(self.version, digest, len(self.programs), len(judged), other)


def located(name: str) -> str:
    """The file of a list: one of docs/frozen by its version, or the file of this name."""
    published = PUBLISHED / f"{name}.txt"
    known = re.fullmatch(r"[\w.+-]+", name) and published.is_file() and not Path(name).exists()
    return str(published) if known else name
