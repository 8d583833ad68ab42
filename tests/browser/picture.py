"""``python -m tests.browser.picture PAGE.html PICTURE.png``: a screenshot for the README."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.browser.chromium import chromium


def main(page: Path, picture: Path) -> None:
    """Take the screenshot."""
    with chromium() as browser:
        window = browser.new_page(viewport={"width": 1100, "height": 620}, color_scheme="light")
        window.goto(f"{page.absolute().as_uri()}#view=cases")
        window.screenshot(path=picture)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
