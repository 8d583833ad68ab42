"""Chromium of the distribution, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser, closed at the end.  Raises FileNotFoundError."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise FileNotFoundError("no chromium: .ci/setup browser installs it")
    # Its sandbox does not work as root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=arguments)
        try:
            yield started
        finally:
            started.close()
