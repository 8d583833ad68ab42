"""Fixtures for tests in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request

from conformance.report.matrix.findings import Finding
from conformance.report.matrix.html import render_html
from conformance.report.matrix.table import matrix
from tests.browser.chromium import chromium
from tests.browser.pages import FINDING, beside, hostile, kernels, many


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests, which have windows of their own."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports under test, as files."""
    directory = tmp_path_factory.mktemp("pages")
    findings: list[Finding] = [FINDING]
    shown = {"few": kernels(), "many": many(), "hostile": hostile(), "beside": beside()}
    for name, runs in shown.items():
        text = render_html(matrix(runs), findings)
        (directory / f"{name}.html").write_text(text, encoding="utf-8")
    return directory


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A window of 1280 by 800 that must not log errors or use the network."""
    window = browser.new_page(viewport={"width": 1280, "height": 800})
    complaints: list[str] = []
    window.on("console", lambda output: complaints.append(output.text))
    window.on("pageerror", lambda error: complaints.append(str(error)))

    def asked(request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            complaints.append(f"asked the network for {request.url}")

    window.on("request", asked)
    yield window
    window.close()
    assert complaints == []
