"""JSON Schemas of results.json and of the published summaries, made of the structs.

``python -m conformance.results.schema`` writes them to docs/.  A key is required if readers require
it: one that was added later is not, and unknown keys are allowed, as in every document of schema 1.
docs/results.md explains the keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.json import schema_components

from conformance.results.case_result import CASE_ID, CaseResult
from conformance.results.contradiction import Contradiction
from conformance.results.frozen import DOCS, FrozenShare
from conformance.results.json_codec import SCHEMA
from conformance.results.outcome import Outcome, RunVerdict
from conformance.results.run import Functions, RunHead
from conformance.results.shard import Shard
from conformance.results.summary import Summary

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/{name}"
_CASE_ID = {"pattern": f"^{CASE_ID.pattern}$"}
_SHA256 = {"pattern": "^[0-9a-f]{64}$"}
_SECONDS = {"minimum": 0}
# What a type does not say, by class and key.
_MORE: Mapping[tuple[str, str], Schema] = {
    ("RunHead", "schema"): {"const": SCHEMA},
    ("RunHead", "host"): {"required": ["accel"]},
    ("CaseResult", "id"): _CASE_ID,
    ("CaseResult", "duration_s"): _SECONDS,
    ("PatchFacts", "sha256"): _SHA256,
    ("Shard", "sha256"): _SHA256,
    ("Summary", "cases"): {"propertyNames": _CASE_ID},
}
_RECORDED_CASE = {
    "type": "array",
    "prefixItems": [{"enum": list(Outcome)}, {"type": "string", "pattern": "^[0-9a-f]{0,12}$"}],
    "minItems": 2,
    "maxItems": 2,
}


def results_schema() -> Schema:
    """The schema of results.json."""
    kinds = (RunHead, CaseResult, RunVerdict, Contradiction, Functions, FrozenShare, Shard)
    found = _definitions(*kinds)
    run = found.pop(RunHead.__name__)
    run["properties"] |= {
        "cases": {"type": "array", "items": _reference(CaseResult)},
        "summary": {"$ref": "#/$defs/Summary"},
    }
    run["required"] = ["schema", *run["required"], "cases", "summary"]
    found["Summary"] = _summary()
    return _head("A run of uevt: results.json", found, run)


def summary_schema() -> Schema:
    """The schema of the summaries in docs/results."""
    found = {**_definitions(Summary), "RecordedCase": _RECORDED_CASE}
    return _head("A published run of uevt", found, found.pop(Summary.__name__))


def _head(title: str, definitions: dict[str, Schema], schema: Schema) -> Schema:
    return {
        "$schema": _DIALECT,
        **schema,
        "title": title,
        "$defs": dict(sorted(definitions.items())),
    }


def _definitions(*kinds: type) -> dict[str, Schema]:
    """The schemas of these types and of those in them, by name."""
    _, found = schema_components(kinds, ref_template=_REFERENCE)
    for each in found.values():
        # Docstrings are for the readers of the source.
        each.pop("description", None)
    for (name, key), more in _MORE.items():
        if name in found:
            found[name]["properties"][key] |= more
    return found


def _reference(kind: type) -> Schema:
    return {"$ref": _REFERENCE.format(name=kind.__name__)}


def _summary() -> Schema:
    """The summary, which has either a verdict and counts or the result of a self-check."""
    counts = {outcome.value: {"type": "integer", "minimum": 0} for outcome in Outcome}
    common = {
        "selected": {"type": "integer", "minimum": 0},
        "duration_s": {"type": "number", **_SECONDS},
        "note": {"type": "string"},
        "contradictions": {"type": "array", "items": _reference(Contradiction)},
        "functions": _reference(Functions),
        "frozen": _reference(FrozenShare),
        "shards": {"type": "array", "items": _reference(Shard)},
    }
    verdicts = {"verdict": _reference(RunVerdict), "self_check": {"enum": ["ok", "failed"]}}
    return {
        "type": "object",
        "properties": {**verdicts, **counts, **common},
        "required": ["selected", "duration_s", "note"],
        "oneOf": [{"required": ["verdict"]}, {"required": ["self_check"]}],
    }


def documents() -> Iterator[tuple[Path, str]]:
    """The files in docs/ with their text."""
    for name, schema in (("results", results_schema()), ("summary", summary_schema())):
        yield DOCS / f"{name}.schema.json", json.dumps(schema, indent=1) + "\n"


if __name__ == "__main__":
    for file, text in documents():
        file.write_text(text, encoding="utf-8")
