"""Operations from the JSON values that ``Operation.encode`` gives."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct

from conformance.ops import (
    allocations,
    bpf,
    compat,
    credentials,
    descriptors,
    file_attributes,
    files,
    memory,
    perf,
    processes,
    programs,
    race,
    sockets,
    tasks,
    trace_pipe,
    transfers,
)
from conformance.ops.operation import Operation

_MODULES = (
    *(allocations, bpf, compat, credentials, descriptors, file_attributes, files, memory, perf),
    *(processes, programs, race, sockets, tasks, trace_pipe, transfers),
)
_hints = cache(get_type_hints)


@cache
def _kinds() -> Mapping[str, type[Operation]]:
    classes = [each for module in _MODULES for each in vars(module).values()]
    found = [each for each in classes if isinstance(each, type) and issubclass(each, Operation)]
    return {each.__name__: each for each in found}


def decode_operation(data: Mapping[str, Any]) -> Operation:
    """The operation that ``encode`` gave ``data``.  Raises ValueError for anything else."""
    kind = _kinds().get(str(data.get("op")))
    if kind is None:
        raise ValueError(f"no operation is called {data.get('op')!r:.40}")
    decoded: Operation = _record(kind, data)
    return decoded


def _record(kind: Any, data: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    try:
        values = {name: _value(hints[name], data[name]) for name in kind.__struct_fields__}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a {kind.__name__}: {error!r}") from error
    return kind(**values)


def _value(kind: Any, data: Any) -> Any:
    if isinstance(kind, UnionType):
        inner = next(each for each in get_args(kind) if each is not NoneType)
        return None if data is None else _value(inner, data)
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], each) for each in data)
    if kind is bytes:
        return bytes.fromhex(data["hex"])
    if issubclass(kind, Operation):
        return decode_operation(data)
    if issubclass(kind, Struct):
        return _record(kind, data)
    if not isinstance(data, str if issubclass(kind, str) else kind) and not issubclass(kind, Enum):
        raise TypeError(f"{data!r:.40} is no {kind.__name__}")
    return kind(data)
