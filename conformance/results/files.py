"""Read JSON files of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance.results.errors import ReportError


def read_json(path: Path) -> Any:
    """Raises ReportError for a file that cannot be read, or is not JSON."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ReportError.unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise ReportError.malformed(path, f"is not JSON: {error}") from error
