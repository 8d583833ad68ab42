"""HTML pages as single files that need no network, from templates/ with Jinja.

Styles and scripts are inlined from files next to the templates.  The Content-Security-Policy of
the page allows exactly these, whatever its data contain.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"


def render_page(
    template: str, *, styles: tuple[str, ...] = (), scripts: tuple[str, ...] = (), **data: object
) -> str:
    """Render a template with ``data``, inlining these styles and scripts after those of all."""
    style = _joined(("page.css", *styles))
    script = _joined(("page.js", *scripts))
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)};"
        f" script-src {_digest(script)}; base-uri 'none'; form-action 'none'"
    )
    found = _environment().get_template(template)
    return found.render(policy=policy, style=Markup(style), script=Markup(script), **data)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


@cache
def _joined(names: tuple[str, ...]) -> str:
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


def _digest(text: str) -> str:
    """A CSP source expression for this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
