"""Declaring a case: its id, references, the kernels it holds for, and its isolation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

import pytest
from msgspec import Struct

from conformance.abi.bugs import BUGS
from conformance.abi.profile import Profile, in_range
from conformance.abi.switches import BY_NAME, DERIVED
from conformance.client.user_events import UserEvents as UserEvents
from conformance.results.case_result import CASE_ID
from conformance.results.outcome import Level

CaseFunction = TypeVar("CaseFunction", bound=Callable[..., None])

_VARIANT = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
# The file of a spec that names none, and the document of a doc that names none.
_SOURCE = "trace_events_user.c"
_DOCUMENT = "user_events.rst@v6.12"
_NAMES_SOURCE = re.compile(r"[\w/.-]+\.[ch]\b")
_NAMES_DOCUMENT = re.compile(r"[\w/.-]+\.(rst|c|h)(:\w+)?@")
_DIRECTORY = "Documentation/trace/"
_OF_DIRECTORY = re.compile(r"[\w-]+\.rst@")
_ATTRIBUTE = "uevt_case"
_KEYWORDS = "uevt_keywords"
# What `needs` and `without` may name, and `bug`.
_CONDITIONS = (*BY_NAME, *DERIVED)
_BUGS = tuple(each.name for each in BUGS)


# Variants of a case that have the tier of the case; the others are full.
QUICK_VARIANTS = 1
# Marks the others for pytest.
FULL_MARK = pytest.mark.uevt_full
# Marks a case with a table: names of the parameters, and the rows.
VARIANTS_MARK = pytest.mark.uevt_variants


class Tier(StrEnum):
    """The time a case may take; all time goals are about quick."""

    QUICK = "quick"
    FULL = "full"


class Isolation(StrEnum):
    """What a case needs of its guest, and leaves changed.

    ``none`` leaves nothing; ``events`` creates only events of its own, which may linger;
    ``global`` changes or reads state that all events share, and starts on a system without
    events; ``fatal`` destroys the guest.  The harness restores what a case changes, see
    ``conformance.runner.cleanup``.
    """

    NONE = "none"
    EVENTS = "events"
    GLOBAL = "global"
    FATAL = "fatal"


class Facility(StrEnum):
    """Optional kernel features that cases use."""

    PERF = "perf"
    BPF = "bpf"
    # BPF programs on events; implies bpf and perf.
    BPF_TRACING = "bpf_tracing"
    KPROBES = "kprobes"
    IO_URING = "io_uring"
    # Eprobes, created through dynamic_events.
    EPROBES = "eprobes"
    HIST = "hist"
    SNAPSHOT = "snapshot"
    # Needs a guest with two CPUs.
    SMP = "smp"
    # Memory of a device that a program can map.
    DEVICE_MEMORY = "device_memory"
    # The 32-bit entry of a 64-bit kernel of x86.
    IA32 = "ia32"
    # Freed memory that can be allocated again at once.
    FREED_MEMORY = "freed_memory"
    # Every user may create user namespaces.
    USER_NAMESPACES = "user_namespaces"

    @property
    def option(self) -> str:
        """What a kernel without it lacks: the option that builds it, or a phrase."""
        return _OPTION[self]


_OPTION = {
    Facility.PERF: "CONFIG_PERF_EVENTS",
    Facility.BPF: "CONFIG_BPF_SYSCALL",
    Facility.BPF_TRACING: "CONFIG_BPF_EVENTS",
    Facility.KPROBES: "CONFIG_KPROBE_EVENTS",
    Facility.IO_URING: "CONFIG_IO_URING",
    Facility.EPROBES: "CONFIG_PROBE_EVENTS",
    Facility.HIST: "CONFIG_HIST_TRIGGERS",
    Facility.SNAPSHOT: "CONFIG_TRACER_SNAPSHOT",
    Facility.SMP: "CONFIG_SMP",
    Facility.DEVICE_MEMORY: "CONFIG_PCI",
    Facility.IA32: "CONFIG_IA32_EMULATION",
    Facility.FREED_MEMORY: "immediate reuse of freed memory (CONFIG_KASAN=y)",
    Facility.USER_NAMESPACES: "user namespaces (CONFIG_USER_NS, user.max_user_namespaces)",
}


class Case(Struct, frozen=True):
    """The declaration of a case.

    ``spec`` is the kernel function that decides; ``doc`` is file@tag, and what the documentation
    or header says there, in our own words.  ``level`` is the kind of promise.
    """

    id: str
    spec: str
    doc: str
    profiles: str
    needs: tuple[str, ...]
    tier: Tier
    isolation: Isolation
    # The dated switch whose probe this case is, "" for none.
    switch: str = ""
    # Switches and derived properties that must be off.
    without: tuple[str, ...] = ()
    # The module of fixtures/modules that must be loaded, "" for none.
    module: str = ""
    # Optional kernel features; those implied by another are not named.
    facilities: tuple[Facility, ...] = ()
    # First paragraph of the docstring, on one line.
    sentence: str = ""
    level: Level = Level.CONTRACT
    # Known bugs of the kernel that show in the answers.
    bugs: tuple[str, ...] = ()
    # Programs of the host that the case runs in its guest.
    programs: tuple[str, ...] = ()
    # Why only a kernel of its own can judge it, "" for no reason.
    own_kernel: str = ""

    @property
    def surface(self) -> str:
        """First part of the id."""
        return self.id.partition(".")[0]

    @property
    def processors(self) -> int:
        """Number of CPUs of its guest."""
        return 2 if Facility.SMP in self.facilities else 1

    @property
    def guest(self) -> tuple[int, bool]:
        """The guest it needs: the number of CPUs, and whether it has the programs of the host."""
        return self.processors, bool(self.programs)

    def applies(self, profile: Profile) -> bool:
        """Whether the case judges kernels of a profile."""
        return (
            in_range(self.profiles, profile)
            and all(map(profile.has, self.needs))
            and not any(map(profile.has, self.without))
        )


class Declaration(TypedDict, total=False):
    """The keywords of a declaration: those of a surface are the defaults of its cases."""

    spec: str
    doc: str
    profiles: str
    needs: str
    without: str
    tier: str
    isolation: str
    switch: str
    module: str
    facilities: str
    level: str
    bug: str
    programs: str
    own_kernel: str


_DEFAULTS = Declaration(
    spec="",
    doc="",
    profiles="5.18..",
    needs="",
    without="",
    tier="quick",
    isolation="events",
    switch="",
    module="",
    facilities="",
    level="",
    bug="",
    programs="",
    own_kernel="",
)


def surface(
    name: str, spec: str = "", doc: str = "", /, **defaults: Unpack[Declaration]
) -> Surface:
    """The decorator that declares the cases of one file; ``defaults`` hold for each of them.

    ``profiles`` is a range of releases such as ``6.4..``.  ``needs`` and ``without`` name
    switches, or what is derived from them, that must be on or off; ``switch`` names the one
    whose probe the case is, ``bug`` the known bugs that show in its answers.  ``facilities`` names
    optional kernel features, ``programs`` those of the host that the guest must have.  Separate
    several words by spaces.  ``level`` is the kind of promise (``Level``).  ``own_kernel`` is why
    ``--here`` skips a case.  A ``spec`` or ``doc`` that names no file is about that of the surface,
    which is trace_events_user.c and user_events.rst@v6.12 if the surface names none.  Documents of
    Documentation/trace need no directory; ``@v6.1: …`` is about user_events.rst@v6.1.  ``@spec``
    and ``@doc`` below ``@case`` replace its keywords where they do not fit on one line.
    """
    return Surface(name, {"spec": spec, "doc": doc, **defaults})


class Surface(Struct, frozen=True):
    """Declare test functions as cases of one surface: ``@case`` or ``@case(tier="full", …)``."""

    name: str
    defaults: Declaration

    @overload
    def __call__(self, function: CaseFunction, /) -> CaseFunction: ...
    @overload
    def __call__(self, /, **own: Unpack[Declaration]) -> Callable[[CaseFunction], CaseFunction]: ...
    def __call__(
        self, function: CaseFunction | None = None, /, **own: Unpack[Declaration]
    ) -> CaseFunction | Callable[[CaseFunction], CaseFunction]:
        """Declare a case; raises ValueError for a keyword or word that does not exist."""

        def mark(function: CaseFunction) -> CaseFunction:
            id = f"{self.name}.{function.__name__.removeprefix('test_')}"
            below = _keywords_below(function)
            try:
                _check_once(own, below)
                declared = self._case(id, {**own, **below}, function.__doc__ or "")
            except ValueError as error:
                raise ValueError(f"case {id}: {error}") from None
            setattr(function, _ATTRIBUTE, declared)
            return function

        return mark if function is None else mark(function)

    def _case(self, id: str, own: Declaration, docstring: str) -> Case:
        if not CASE_ID.fullmatch(id):
            raise ValueError("write surface.name in [a-z0-9_.-]")
        stated: Declaration = {**_DEFAULTS, **self.defaults, **own}
        _check_words("keyword", stated, Declaration.__annotations__)
        needs, without = stated["needs"].split(), stated["without"].split()
        _check_words("switch", (*needs, *without), _CONDITIONS)
        _check_words("switch", stated["switch"].split(), BY_NAME)
        _check_words("tier", [stated["tier"]], tuple(Tier))
        _check_words("isolation", [stated["isolation"]], tuple(Isolation))
        facilities = stated["facilities"].split()
        _check_words("facility", facilities, tuple(Facility))
        spec = _spec(self.defaults.get("spec", ""), own.get("spec", ""))
        doc = _doc(self.defaults.get("doc", ""), own.get("doc", ""))
        _check_words("level", [stated["level"]], tuple(Level))
        bugs = stated["bug"].split()
        _check_words("bug", bugs, _BUGS)
        if stated["switch"] in _BUGS:
            bugs = [stated["switch"], *bugs]
        return Case(
            id=id,
            spec=spec,
            doc=doc,
            profiles=stated["profiles"],
            needs=tuple(needs),
            without=tuple(without),
            tier=Tier(stated["tier"]),
            isolation=Isolation(stated["isolation"]),
            level=Level(stated["level"]),
            bugs=tuple(bugs),
            own_kernel=stated["own_kernel"],
            switch=stated["switch"],
            module=stated["module"],
            facilities=tuple(map(Facility, facilities)),
            programs=tuple(stated["programs"].split()),
            sentence=" ".join(docstring.partition("\n\n")[0].split()),
        )


def _check_once(own: Declaration, below: Declaration) -> None:
    """Raise ValueError for a keyword in both."""
    for keyword in own.keys() & below.keys():
        raise ValueError(f"write {keyword}= or @{keyword}, not both")


def _check_words(kind: str, words: Iterable[str], allowed: Collection[str]) -> None:
    """Raise ValueError for the first word that is not allowed."""
    for word in words:
        if word not in allowed:
            raise ValueError(f"no {kind} {word!r}; write one of {', '.join(allowed)}")


def _spec(of_surface: str, own: str) -> str:
    """The spec of a case with its file."""
    spec = _SOURCE
    for text in filter(None, (of_surface, own)):
        spec = text if _NAMES_SOURCE.match(text) else f"{spec.partition(':')[0]}:{text}"
    return spec


def _doc(of_surface: str, own: str) -> str:
    """The doc of a case with its document."""
    doc = _DOCUMENT
    for text in filter(None, (of_surface, own)):
        if text.startswith("@"):
            text = _DOCUMENT.partition("@")[0] + text
        doc = text if _NAMES_DOCUMENT.match(text) else f"{doc.partition(': ')[0]}: {text}"
    return _DIRECTORY + doc if _OF_DIRECTORY.match(doc) else doc


def spec(text: str) -> Callable[[CaseFunction], CaseFunction]:
    """The keyword ``spec`` of a case on lines of its own, below ``@case``."""
    return _keyword("spec", text)


def doc(text: str) -> Callable[[CaseFunction], CaseFunction]:
    """The keyword ``doc`` of a case on lines of its own, below ``@case``.

    A ``@doc`` below another continues its text, and so does a ``@spec``.
    """
    return _keyword("doc", text)


def _keyword(keyword: Literal["spec", "doc"], text: str) -> Callable[[CaseFunction], CaseFunction]:
    def mark(function: CaseFunction) -> CaseFunction:
        if declared(function):
            raise ValueError(f"{function.__name__}: write @{keyword} below @case")
        below = _keywords_below(function).copy()
        # Decorators run from the last to the first.
        below[keyword] = f"{text} {below[keyword]}" if keyword in below else text
        setattr(function, _KEYWORDS, below)
        return function

    return mark


def _keywords_below(function: object) -> Declaration:
    """What ``@spec`` and ``@doc`` stated about a function."""
    below: Declaration = getattr(function, _KEYWORDS, Declaration())
    return below


def declared(function: object) -> Case | None:
    """What ``case`` declared about a function, if anything."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Case) else None


def variants(
    *table: Mapping[str, Any] | Sequence[Any] | str | int,
    names: str = "",
    quick: int = QUICK_VARIANTS,
) -> Callable[[CaseFunction], CaseFunction]:
    """Parametrise a case: one row for each variant, its id first, then the arguments.

    A row without an id is named by its first argument; a row of one argument may be bare.
    A mapping gives id → argument, or tuple of arguments, for several rows.  ``names`` are
    the parameters to fill, for a case with two tables; by default all but ``ue``.
    The first ``quick`` rows are of the tier of their case, the others of tier full: put
    first what would break first.  Raises ValueError for a row that does not fit.
    """

    def mark(function: CaseFunction) -> CaseFunction:
        parameters = names.split() or [
            name for name in inspect.signature(function).parameters if name != "ue"
        ]
        rows = []
        for number, (id, arguments) in enumerate(_rows(table, len(parameters))):
            if not _VARIANT.fullmatch(id) or len(arguments) != len(parameters):
                raise ValueError(
                    f"{function.__name__}, variant {id!r}: write an id in [a-z0-9_.-] "
                    f"and values for {', '.join(parameters)}"
                )
            marks = (FULL_MARK,) if number >= quick else ()
            rows.append(pytest.param(*arguments, id=id, marks=marks))
        marked: CaseFunction = VARIANTS_MARK(", ".join(parameters), rows)(function)
        return marked

    return mark


def _rows(table: Iterable[Any], width: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """(variant id, arguments) of every row."""
    for row in table:
        if isinstance(row, Mapping):
            for id, value in row.items():
                yield id, value if width > 1 else (value,)
        elif not isinstance(row, tuple):
            yield str(row), (row,)
        elif len(row) == width:
            yield str(row[0]), row
        else:
            yield str(row[0]), row[1:]
