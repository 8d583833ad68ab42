"""The JSON Schemas: documents of uevt follow them, and invalid ones are refused."""

from __future__ import annotations

import functools
import json
import operator
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from conformance.results.frozen import DOCS
from conformance.results.json_codec import SchemaError
from conformance.results.run import RunRecord
from conformance.results.schema import documents, results_schema, summary_schema
from tests.report.samples import UNHURRIED, case, contradicted, head, mixed, run, runs

# The section of docs/results.md that explains the keys of an object.
SECTIONS = {
    "kernel": "KernelFacts",
    "patches": "PatchFacts",
    "cases": "CaseResult",
    "mismatches": "Mismatch",
    "evidence": "Evidence",
    "program": "RecordedStep",
    "allowed and seen": "RecordedAnswer",
    "memory": "RecordedMemory",
    "reports": "Report",
    "rerun": "Rerun",
    "summary": "Summary",
    "functions": "Functions",
    "shards": "Shard",
    "frozen": "FrozenShare",
    "contradictions": "Contradiction",
}


def closed(schema: Any) -> Any:
    """The schema without room for unknown keys: those that this version writes."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    if "properties" in found:
        found["additionalProperties"] = False
    return found


RESULTS = Draft202012Validator(results_schema())
WRITTEN = Draft202012Validator(closed(results_schema()))
PUBLISHED = Draft202012Validator(closed(summary_schema()))


@pytest.mark.parametrize("file", [file for file, _ in documents()], ids=lambda file: file.name)
def test_the_file_is_current(file: Path) -> None:
    text = dict(documents())[file]
    Draft202012Validator.check_schema(json.loads(text))
    assert file.read_text(encoding="utf-8") == text, "run make docs"


@UNHURRIED
@given(runs())
def test_any_run_follows_the_schema(record: RunRecord) -> None:
    WRITTEN.validate(json.loads(json.dumps(record.to_json())))


def test_every_kind_of_run_follows_the_schema() -> None:
    self_check = run(case("write.a"), head=head(self_check=True))
    for record in (mixed(), contradicted(), run(selected=0, not_built=True), self_check):
        WRITTEN.validate(json.loads(json.dumps(record.to_json())))


@pytest.mark.parametrize(
    ("pattern", "schema"), [("example/*/*.json", WRITTEN), ("results/*.json", PUBLISHED)]
)
def test_runs_on_kernels_follow_their_schema(pattern: str, schema: Draft202012Validator) -> None:
    files = sorted(DOCS.glob(pattern))
    assert files
    for file in files:
        schema.validate(json.loads(file.read_text()))


MISSING = object()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("schema", 2),
        ("schema", MISSING),
        ("host", {}),
        ("kernel", MISSING),
        ("kernel.release", None),
        ("fail_on", "warning"),
        ("cases", MISSING),
        ("cases.0.outcome", "OK"),
        ("cases.0.id", "Registration"),
        ("cases.0.duration_s", -1),
        ("cases.1.mismatches.0.step", "2"),
        ("cases.1.mismatches.0.field", MISSING),
        ("summary.verdict", "GOOD"),
        ("summary.selected", MISSING),
    ],
)
def test_reader_and_schema_refuse_the_same(place: str, value: object) -> None:
    document = json.loads(json.dumps(mixed().to_json()))
    *path, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    within = functools.reduce(operator.getitem, path, document)
    within[last] = value
    if value is MISSING:
        del within[last]
    assert not RESULTS.is_valid(document)
    with pytest.raises(SchemaError):
        RunRecord.from_json(document)


def test_documents_of_other_versions_of_schema_1_are_read() -> None:
    """A later version adds keys; an earlier one lacks those with a default."""
    document = json.loads(json.dumps(mixed().to_json()))
    document["new"] = document["cases"][0]["new"] = 1
    for added in ("tier", "selection"):
        del document[added]
    del document["kernel"]["patches"]
    RESULTS.validate(document)
    assert RunRecord.from_json(document) == mixed()


def test_the_page_explains_each_key() -> None:
    schema = results_schema()
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    explained = {
        heading: set(re.findall(r"`(\w+)`", " ".join(re.findall(r"(?m)^\| (`[^|]+) \|", text))))
        for heading, text in re.findall(r"(?ms)^### (.+?)\n(.*?)(?=^##|\Z)", page)
    }
    objects = {name for name, each in schema["$defs"].items() if "properties" in each}
    assert set(SECTIONS.values()) == objects
    assert {heading: explained[heading] for heading in SECTIONS} == {
        heading: set(schema["$defs"][name]["properties"]) for heading, name in SECTIONS.items()
    }
    assert explained["run"] == set(schema["properties"])
