"""The specification has every case once, for its kernels; docs/cases.md counts them."""

from __future__ import annotations

import re
from html import unescape
from types import ModuleType

import pytest

from conformance.cases.case import surface as declare
from conformance.cases.case import variants
from conformance.cases.discovery import all_cases, case_modules
from conformance.report.specification import level_table
from conformance.report.specification.page import profiles, render, surfaces
from tests.cases.variants import all_variants


@pytest.fixture(scope="module")
def page() -> str:
    return render(surfaces(case_modules()))


def test_every_case_is_on_the_page_once(page: str) -> None:
    ids = re.findall(r'<article id="([^"]+)"', page)
    assert sorted(ids) == sorted(each.id for each in all_cases())
    assert len(set(re.findall(r' id="([^"]+)"', page))) == len(re.findall(r' id="', page))
    assert "://" not in re.sub(r"<article.*</article>", "", page, flags=re.DOTALL)


def test_surfaces_are_in_order_of_use() -> None:
    names = [surface.name for surface in surfaces(case_modules())]
    assert names[:3] == ["header", "registration", "grammar"]
    assert names[-1] == "rfc"


def test_a_case_has_the_kernels_it_applies_to(page: str) -> None:
    known = [profile.name for profile in profiles()]
    found = re.findall(r'<article id="rfc\.[^"]+" data-kernels="([^"]*)"', page)
    assert {known[int(place)] for places in found for place in places.split()} == {"rfc-v1"}


def test_text_is_escaped() -> None:
    """Sentences may contain markup."""
    module = ModuleType("conformance.cases.test_made_up", "Chapters & <b>more</b>.")

    case = declare(
        "made_up",
        spec="f.c:f<g>",
        doc="a & b",
        level="detail",
        profiles="6.4..6.8",
        needs="persist",
    )

    @case
    @variants({"small": 1, "large": 2})
    def test_one(size: int) -> None:
        """Less < more,
        on two lines.

        Behind & beyond.
        """

    test_one.__module__ = module.__name__
    vars(module)["test_one"] = test_one
    (surface,) = surfaces([module])
    (sentence,) = surface.chapters[0].sentences
    assert (sentence.text, sentence.more) == ("Less < more, on two lines.", "Behind & beyond.")
    assert sentence.variants == ("small", "large")
    text = render([surface])
    assert "<b>more</b>" not in text
    assert "Chapters & <b>more</b>." in unescape(text)
    assert "1 sentences, 2 with variants" in text
    assert '<span class="chip">detail</span>' in text


@pytest.fixture(scope="module")
def table() -> str:
    return level_table.render(surfaces(case_modules()))


def test_the_committed_table_is_up_to_date(table: str) -> None:
    assert level_table.FILE.read_text(encoding="utf-8") == table, "stale: run `make docs`"


def test_every_variant_is_counted(table: str) -> None:
    found = all_variants()
    cases = len({each.case.id for each in found})
    assert table.splitlines()[-1].endswith(f"| {cases:,} ({len(found):,}) |")
