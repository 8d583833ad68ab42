"""JSON Schemas of results.json and of the published summaries, made of the structs.

``python -m conformance.results.schema`` writes them to docs/.  A key is required if readers require
it: one that was added later is not, and unknown keys are allowed, as in every document of schema 1.
docs/results.md explains the keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

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
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
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
    found: dict[str, Schema] = {}
    run = _object(RunHead, found)
    run["properties"] |= {
        "cases": {"type": "array", "items": _kind(CaseResult, found)},
        "summary": {"$ref": "#/$defs/Summary"},
    }
    run["required"] = ["schema", *run["required"], "cases", "summary"]
    found["Summary"] = _summary(found)
    return _head("A run of uevt: results.json", found) | run


def summary_schema() -> Schema:
    """The schema of the summaries in docs/results."""
    found: dict[str, Schema] = {"RecordedCase": _RECORDED_CASE}
    summary = _object(Summary, found)
    return _head("A published run of uevt", found) | summary


def _head(title: str, definitions: dict[str, Schema]) -> Schema:
    return {"$schema": _DIALECT, "title": title, "$defs": dict(sorted(definitions.items()))}


def _summary(found: dict[str, Schema]) -> Schema:
    """The summary, which has either a verdict and counts or the result of a self-check."""
    counts = {outcome.value: {"type": "integer", "minimum": 0} for outcome in Outcome}
    common = {
        "selected": {"type": "integer", "minimum": 0},
        "duration_s": {"type": "number", **_SECONDS},
        "note": {"type": "string"},
        "contradictions": {"type": "array", "items": _kind(Contradiction, found)},
        "functions": _kind(Functions, found),
        "frozen": _kind(FrozenShare, found),
        "shards": {"type": "array", "items": _kind(Shard, found)},
    }
    verdicts = {"verdict": _kind(RunVerdict, found), "self_check": {"enum": ["ok", "failed"]}}
    return {
        "type": "object",
        "properties": {**verdicts, **counts, **common},
        "required": ["selected", "duration_s", "note"],
        "oneOf": [{"required": ["verdict"]}, {"required": ["self_check"]}],
    }


def _object(kind: Any, found: dict[str, Schema]) -> Schema:
    """The schema of a struct; those of the classes in it are added to ``found``."""
    hints = get_type_hints(kind)
    properties = {
        each.name: _kind(hints[each.name], found) | _MORE.get((kind.__name__, each.name), {})
        for each in fields(kind)
    }
    needed = [each.name for each in fields(kind) if each.required]
    return {"type": "object", "properties": properties, "required": needed}


def _kind(kind: Any, found: dict[str, Schema]) -> Schema:
    """The schema of a type that msgspec encodes."""
    if kind is Any:
        return {}
    if isinstance(kind, UnionType):
        return {"anyOf": [_kind(each, found) for each in get_args(kind)]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _kind(get_args(kind)[0], found)}
    if get_origin(kind) is dict:
        return {"type": "object", "additionalProperties": _kind(get_args(kind)[1], found)}
    if issubclass(kind, Struct):
        name = getattr(kind, "__name__", "")
        if name not in found:
            # Entered first: a class may contain itself.
            found[name] = {}
            found[name] = _object(kind, found)
        return {"$ref": f"#/$defs/{name}"}
    if issubclass(kind, StrEnum):
        return {"enum": [each.value for each in kind]}
    return {"type": _SIMPLE[kind]}


def documents() -> Iterator[tuple[Path, str]]:
    """The files in docs/ with their text."""
    for name, schema in (("results", results_schema()), ("summary", summary_schema())):
        yield DOCS / f"{name}.schema.json", json.dumps(schema, indent=1) + "\n"


if __name__ == "__main__":
    for file, text in documents():
        file.write_text(text, encoding="utf-8")
