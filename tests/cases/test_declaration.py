"""Declaring cases and their variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformance.cases.case import (
    FULL_MARK,
    Case,
    Facility,
    Isolation,
    Tier,
    declared,
    doc,
    spec,
    surface,
    variants,
)
from conformance.results.outcome import Level

DOC = "Documentation/trace/user_events.rst@v6.12"
REG_GET = "trace_events_user.c:user_reg_get"
Decorator = Callable[[Any], Any]

case = surface("write", level="contract", tier="full", needs="persist")


def test_a_case_takes_its_id_and_sentence_from_the_function() -> None:
    @case
    def test_short() -> None:
        """A short payload
        is refused.

        More about it.
        """

    assert declared(test_short) == Case(
        id="write.short",
        spec="trace_events_user.c",
        doc=DOC,
        profiles="5.18..",
        needs=("persist",),
        tier=Tier.FULL,
        isolation=Isolation.EVENTS,
        sentence="A short payload is refused.",
        level=Level.CONTRACT,
    )


def declare(*decorators: Decorator) -> Case:
    """The case of a function with these decorators, the outermost first."""

    def test_short() -> None: ...

    function: Any = test_short
    for decorate in reversed(decorators):
        function = decorate(function)
    found = declared(function)
    assert found is not None
    return found


def test_keywords_of_a_case_replace_those_of_its_surface() -> None:
    found = declare(
        case(tier="quick", needs="", without="auto_delete persist", facilities="perf smp")
    )
    assert (found.tier, found.needs, found.without) == ("quick", (), ("auto_delete", "persist"))
    assert found.facilities == (Facility.PERF, Facility.SMP)


@pytest.mark.parametrize(
    ("of_surface", "own", "spec"),
    [
        ("", "", "trace_events_user.c"),
        ("", "user_reg_get", "trace_events_user.c:user_reg_get"),
        ("user_reg_get", "", "trace_events_user.c:user_reg_get"),
        ("user_reg_get", "user_unreg_get", "trace_events_user.c:user_unreg_get"),
        ("trace.c", "a", "trace.c:a"),
        ("trace.c", "ring.c:b", "ring.c:b"),
    ],
)
def test_spec_without_a_file_is_about_that_of_the_surface(
    of_surface: str, own: str, spec: str
) -> None:
    found = declare(surface("write", spec=of_surface, level="contract")(spec=own))
    assert found.spec == spec


@pytest.mark.parametrize(
    ("of_surface", "own", "doc"),
    [
        ("", "", DOC),
        ("Status", "Deleting: a name", f"{DOC}: Deleting: a name"),
        ("ftrace.rst@v6.12", "", "Documentation/trace/ftrace.rst@v6.12"),
        ("Status", "events.rst@v6.1: a", "Documentation/trace/events.rst@v6.1: a"),
        ("events.rst@v6.1", "@v6.1: a", "Documentation/trace/user_events.rst@v6.1: a"),
        ("Status", "include/trace.h@v6.1: b", "include/trace.h@v6.1: b"),
    ],
)
def test_doc_without_a_document_is_about_that_of_the_surface(
    of_surface: str, own: str, doc: str
) -> None:
    found = declare(surface("write", doc=of_surface, level="contract")(doc=own))
    assert found.doc == doc


def test_spec_and_doc_of_a_surface_are_its_first_arguments() -> None:
    found = declare(surface("write", "user_reg_get", "Registering: a size", level="contract"))
    assert (found.spec, found.doc) == (REG_GET, f"{DOC}: Registering: a size")


def test_spec_and_doc_may_be_decorators() -> None:
    found = declare(case(tier="quick"), spec("user_reg_get"), doc("Registering: a size"))
    assert found.tier is Tier.QUICK
    assert (found.spec, found.doc) == (REG_GET, f"{DOC}: Registering: a size")


def test_a_second_doc_or_spec_continues_the_first() -> None:
    docs = (doc("Registering: a size;"), doc("silent about"), doc("others"))
    found = declare(case, *docs, spec("user_reg_get;"), spec("user_unreg_get"))
    assert found.spec == f"{REG_GET}; user_unreg_get"
    assert found.doc == f"{DOC}: Registering: a size; silent about others"


@pytest.mark.parametrize(
    ("decorators", "message"),
    [
        ((case(doc="Status"), doc("Deleting")), "write doc= or @doc, not both"),
        ((spec("user_reg_get"), case), "test_short: write @spec below @case"),
        ((surface("write"),), r"case write\.short: no level ''; write one of"),
    ],
)
def test_a_wrong_declaration_is_refused(decorators: tuple[Decorator, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declare(*decorators)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"teir": "full"}, "no keyword 'teir'; write one of spec, doc, profiles, "),
        ({"tier": "ful"}, "no tier 'ful'; write one of quick, full"),
        ({"isolation": "own"}, "no isolation 'own'; write one of none, events, global, fatal"),
        ({"facilities": "perf pref"}, "no facility 'pref'; write one of perf, bpf, "),
        ({"needs": "persits"}, "no switch 'persits'; write one of "),
        ({"without": "persits"}, "no switch 'persits'; write one of "),
        ({"level": "promise"}, "no level 'promise'; write one of contract, behaviour, detail"),
        ({"switch": "persits"}, "no switch 'persits'; write one of "),
    ],
)
def test_a_wrong_word_is_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"case write.short: {message}"):
        declare(case(**keywords))


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"case write.Short: write surface\.name"):

        @case
        def test_Short() -> None: ...


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ([("a", 1, 2), ("b", 3, 4)], [("a", (1, 2)), ("b", (3, 4))]),
        ([(1, 2), ("3", 4)], [("1", (1, 2)), ("3", ("3", 4))]),
        ([{"a": (1, 2)}, ("b", 3, 4)], [("a", (1, 2)), ("b", (3, 4))]),
    ],
)
def test_variants_of_two_parameters(table: list[Any], rows: list[Any]) -> None:
    def test(ue: object, left: object, right: object) -> None: ...

    assert rows_of(variants(*table)(test)) == ("left, right", rows)


def test_variants_of_one_parameter() -> None:
    def test(ue: object, only: object) -> None: ...

    table = variants(1, "two", ("three", (3, 3)), {"four": (4, 4)})
    rows = [("1", (1,)), ("two", ("two",)), ("three", ((3, 3),)), ("four", ((4, 4),))]
    assert rows_of(table(test)) == ("only", rows)


def test_the_first_variant_keeps_the_tier_of_its_case() -> None:
    @variants(1, 2, 3)
    def test(ue: object, only: object) -> None: ...

    (mark,) = vars(test)["pytestmark"]
    assert [FULL_MARK in row.marks for row in mark.args[1]] == [False, True, True]


@pytest.mark.parametrize("row", [("Bad", 1, 2), ("a", 1, 2, 3), ("a",), "a"])
def test_a_row_that_does_not_fit_is_refused(row: Any) -> None:
    def test(ue: object, left: object, right: object) -> None: ...

    with pytest.raises(ValueError, match="and values for left, right"):
        variants(row)(test)


def rows_of(function: Callable[..., None]) -> tuple[str, list[tuple[str, tuple[Any, ...]]]]:
    """The parameters and rows that a function is parametrised by."""
    (mark,) = vars(function)["pytestmark"]
    names, rows = mark.args
    return names, [(row.id, row.values) for row in rows]
