"""The report with mouse and keyboard, on a phone, and in a dark theme."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.pages import LAG_MS, MANY_CASES, OPEN_MS

FAILED = "registration.size_short"


def open_page(page: Page, pages: Path, name: str = "few", hash: str = "#view=cases") -> None:
    page.goto(f"{(pages / name).with_suffix('.html').as_uri()}{hash}")


def cell(page: Page, case: str, column: int) -> Locator:
    """A visible cell of a case; column -1 has the names."""
    row = page.get_by_role("row").filter(has=page.get_by_text(case, exact=True))
    return row.locator(f'[data-column="{column}"]')


def evidence(page: Page) -> Locator:
    return page.get_by_role("dialog")


def shown(page: Page) -> str:
    return str(page.locator("#count").inner_text())


def widths(page: Page) -> tuple[int, int]:
    found: list[int] = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    return found[0], found[1]


def test_the_overview_comes_first(page: Page, pages: Path) -> None:
    open_page(page, pages, hash="")
    expect(page.get_by_role("heading", name="Failed")).to_be_visible()
    expect(page.locator("#grid")).to_be_hidden()
    page.get_by_role("link", name="Cases").click()
    expect(page.locator("#grid")).to_be_visible()
    page.go_back()
    expect(page.locator("#grid")).to_be_hidden()


def test_a_click_on_a_cell_opens_its_evidence(page: Page, pages: Path) -> None:
    open_page(page, pages)
    cell(page, FAILED, 2).click()
    for text in (
        "a structure of four bytes is accepted",
        "what differs",
        "bit 0 is set",
        "program, paths below /sys/kernel/tracing",
        "documentation",
        "console",
        "nonspaced_match",
    ):
        expect(evidence(page).get_by_text(text).first).to_be_visible()
    expect(evidence(page).locator(".removed", has_text="offset:9;")).to_be_visible()
    expect(evidence(page).locator(".wrong")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(evidence(page)).to_be_hidden()
    expect(page.locator("#grid")).to_be_focused()


@pytest.mark.parametrize(
    ("id", "command"),
    [
        ("write.a.probe", "-k write.a"),
        ("write.a.probe.leftover", "-k write.a"),
        ("write.b.afterwards", "-k write.b"),
    ],
)
def test_a_result_about_a_case_is_run_again_with_it(
    page: Page, pages: Path, id: str, command: str
) -> None:
    open_page(page, pages, "beside", f"#case={id}&kernel=7.3")
    shown = evidence(page).locator("dt", has_text="run it").locator("+ dd")
    assert shown.inner_text().endswith(command)


def test_a_module_is_no_case_to_run_again(page: Page, pages: Path) -> None:
    open_page(page, pages, "beside", "#case=module.some&kernel=7.3")
    expect(evidence(page)).to_be_visible()
    expect(evidence(page).locator("dt", has_text="run it")).to_have_count(0)


def test_arrow_keys_change_the_kernel(page: Page, pages: Path) -> None:
    open_page(page, pages, hash=f"#case={FAILED}&kernel=6.12.117")
    expect(evidence(page).locator("header .mark")).to_have_text("FAIL")
    page.keyboard.press("ArrowRight")
    expect(evidence(page).locator("header .mark")).to_have_text("PASS")
    expect(evidence(page).get_by_text("On 6.12.117 it was FAIL.")).to_be_visible()
    assert "kernel=7.3.4" in page.url


def test_the_id_of_a_function_stands_for_its_first_variant(page: Page, pages: Path) -> None:
    open_page(page, pages, hash="#case=write.size&kernel=7.3.4")
    expect(evidence(page).locator("header code")).to_have_text("write.size.n-0")


def test_the_grid_works_by_keyboard(page: Page, pages: Path) -> None:
    open_page(page, pages)
    page.keyboard.press("/")
    page.keyboard.type("size_short")
    page.keyboard.press("Enter")
    expect(page.locator("#grid")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    active = page.locator(".active")
    expect(active).to_have_attribute("aria-label", "6.12.117: FAIL, PASS before")
    assert page.locator("#grid").get_attribute("aria-activedescendant") == active.get_attribute(
        "id"
    )
    outline = active.evaluate("(cell) => getComputedStyle(cell).outlineColor")
    assert outline not in ("rgba(0, 0, 0, 0)", "transparent")
    page.keyboard.press("Enter")
    expect(evidence(page)).to_be_visible()
    page.keyboard.press("Escape")
    expect(evidence(page)).to_be_hidden()
    expect(active).to_have_attribute("aria-label", "6.12.117: FAIL, PASS before")


def test_enter_folds_a_surface(page: Page, pages: Path) -> None:
    open_page(page, pages)
    grid = page.locator("#grid")
    grid.focus()
    for rows, folded in (("52", 0), ("50", 1), ("52", 0)):
        expect(grid).to_have_attribute("aria-rowcount", rows)
        expect(page.locator('[aria-expanded="false"]')).to_have_count(folded)
        page.keyboard.press("Enter")


@pytest.mark.parametrize(
    ("control", "value", "count"),
    [
        ("show", "differs", "9 of 41 cases"),
        ("show", "unexpected", "6 of 41 cases"),
        ("show", "partly", "9 of 41 cases"),
        ("outcome", "XFAIL", "1 of 41 cases"),
        ("surface", "write", "31 of 41 cases"),
    ],
)
def test_filters(page: Page, pages: Path, control: str, value: str, count: str) -> None:
    open_page(page, pages)
    page.locator(f"#{control}").select_option(value)
    assert shown(page) == count
    # The filter is in the address.
    address = page.url
    open_page(page, pages, hash="")
    page.goto(address)
    page.reload()
    assert shown(page) == count
    page.locator(f"#{control}").select_option("")
    assert shown(page) == "41 cases"


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("write.size.n-7", "1 of 41 cases"),
        ("BYTES whole", "30 of 41 cases"),
        ("size is that of the", "1 of 41 cases"),
        ("nothing has this", "0 of 41 cases"),
    ],
)
def test_search(page: Page, pages: Path, words: str, count: str) -> None:
    open_page(page, pages)
    page.get_by_role("searchbox").fill(words)
    assert shown(page) == count


def test_changed_outcomes_are_marked(page: Page, pages: Path) -> None:
    open_page(page, pages)
    marks = [cell(page, FAILED, column).get_attribute("class") for column in range(4)]
    assert ["changed" in (each or "") for each in marks] == [False, False, True, True]
    drawn = cell(page, FAILED, 2).evaluate("(cell) => getComputedStyle(cell, '::before').content")
    assert drawn == '""'


def test_colour_is_not_the_only_sign(page: Page, pages: Path) -> None:
    open_page(page, pages)
    assert cell(page, FAILED, 2).inner_text() == "FAIL"
    page.set_viewport_size({"width": 360, "height": 740})
    assert [cell(page, FAILED, column).inner_text() for column in (1, 2)] == ["✓", "F"]
    signs = page.locator("#legend .mark").all_inner_texts()
    assert len(signs) == len(set(signs))


def test_a_finding_is_quoted_with_its_case(page: Page, pages: Path) -> None:
    open_page(page, pages, hash="#case=format.array_length&kernel=6.12.117")
    expect(evidence(page).get_by_text("format prints a length")).to_be_visible()
    open_page(page, pages, hash="#finding-0")
    expect(page.locator("#findings .prose")).to_be_visible()


@pytest.mark.parametrize("view", ["overview", "cases", "findings", "kernels", "timing"])
@pytest.mark.parametrize("name", ["few", "many", "hostile"])
def test_a_phone_needs_no_scrolling_sideways(page: Page, pages: Path, name: str, view: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    open_page(page, pages, name, f"#view={view}")
    wide, window = widths(page)
    assert wide <= window
    main = page.locator("main").evaluate("(main) => [main.scrollWidth, main.clientWidth]")
    assert main[0] <= main[1]


def test_evidence_on_a_phone(page: Page, pages: Path) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    open_page(page, pages, hash=f"#case={FAILED}&kernel=6.12.117")
    found = evidence(page).evaluate("(dialog) => [dialog.scrollWidth, dialog.clientWidth]")
    assert found[0] <= found[1] <= 360


@pytest.fixture
def dark(browser: Browser) -> Iterator[Page]:
    """A window of a system with a dark theme."""
    window = browser.new_page(color_scheme="dark")
    yield window
    window.close()


def luminance(page: Page) -> int:
    rgb: list[int] = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    )
    return sum(rgb[:3])


def test_the_theme_follows_the_system_or_the_button(page: Page, dark: Page, pages: Path) -> None:
    open_page(page, pages)
    open_page(dark, pages)
    assert luminance(dark) < 200 < 600 < luminance(page)
    page.locator("#theme").click()
    assert luminance(page) < 200
    page.locator("#theme").click()
    page.reload()
    assert luminance(page) > 600
    assert page.locator("#theme").inner_text() == "theme: light"


def contrast(page: Page, selector: str) -> float:
    """The contrast of text and background by WCAG."""
    return float(
        page.locator(selector).first.evaluate(
            """(element) => {
              const channels = (text) => text.match(/[\\d.]+/g).map(Number);
              const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
                .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
                .reduce((sum, c, place) => sum + c * [0.2126, 0.7152, 0.0722][place], 0);
              let behind = element, back;
              do back = channels(getComputedStyle(behind).backgroundColor);
              while (back[3] === 0 && (behind = behind.parentElement));
              const [one, other] = [light(channels(getComputedStyle(element).color)), light(back)];
              return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
            }"""
        )
    )


@pytest.mark.parametrize("outcome", ["pass", "fail", "xfail", "skip", "crash", "error", "timeout"])
def test_outcomes_have_enough_contrast(page: Page, dark: Page, pages: Path, outcome: str) -> None:
    for window in (page, dark):
        open_page(window, pages)
        assert contrast(window, f"#legend .mark.{outcome}") >= 4.5


@pytest.mark.parametrize(
    "hash", ["", "#view=cases", "#view=kernels", "#case=registration.size_short"]
)
def test_hostile_texts_are_shown_as_text(page: Page, pages: Path, hash: str) -> None:
    alarms: list[str] = []
    page.on("dialog", lambda alarm: alarms.append(alarm.message))
    open_page(page, pages, "hostile", hash)
    page.wait_for_timeout(100)
    assert alarms == []
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    expect(page.get_by_text("<script>alert(1)</script>").first).to_be_attached()


@pytest.mark.parametrize(
    "hash",
    [
        "#case=nothing.known&kernel=x",
        "#view=nowhere",
        "#finding-99",
        "#%E0%A4%A",
        "#q=%00&surface=<b>",
    ],
)
def test_an_invalid_address_is_ignored(page: Page, pages: Path, hash: str) -> None:
    open_page(page, pages, hash=hash)
    expect(page.locator(".view:visible")).to_have_count(1)
    expect(evidence(page)).to_be_hidden()


def test_twenty_kernels_of_eight_hundred_cases_open_quickly(page: Page, pages: Path) -> None:
    took = []
    for _ in range(3):
        open_page(page, pages, "many")
        page.reload()
        took.append(page.evaluate("performance.getEntriesByType('navigation')[0].domComplete"))
        assert shown(page) == f"{MANY_CASES} cases"
    # Exclude the load of the machine.
    assert min(took) < OPEN_MS
    page.locator("#fold").click()
    assert page.locator("#rows .row").count() < 100
    lag = page.evaluate(
        """() => {
          const words = document.getElementById("words"), lags = [];
          for (const text of ["c", "ca", "case_7", "case_77 proves", "nothing", ""]) {
            lags.push(Math.min(...[1, 2, 3].map(() => {
              const began = performance.now();
              words.value = text;
              words.dispatchEvent(new Event("input"));
              document.body.offsetHeight;
              return performance.now() - began;
            })));
          }
          return Math.max(...lags);
        }"""
    )
    assert lag < LAG_MS


def test_the_last_of_many_cases_can_be_reached(page: Page, pages: Path) -> None:
    open_page(page, pages, "many")
    page.locator("#fold").click()
    page.locator("#grid").focus()
    page.keyboard.press("End")
    for _ in range(25):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".active")).to_be_in_viewport()
    expect(page.locator(".active")).to_have_attribute("data-column", "19")
    page.keyboard.press("Enter")
    expect(evidence(page).locator("header code")).to_have_text("surface9.case_9.variant")


def test_the_overview_works_without_scripts(browser: Browser, pages: Path) -> None:
    window = browser.new_page(java_script_enabled=False)
    open_page(window, pages, hash="")
    expect(window.get_by_role("heading", name="Failed")).to_be_visible()
    expect(window.get_by_role("heading", name="Slowest cases")).to_be_visible()
    expect(window.locator("#grid")).to_be_hidden()
    window.close()
