"""Type of the tables that map kinds of operations to the rules of the model.

A rule applies an operation to one state and returns that state's answer.  It raises Errno for a
system call that fails and NotModelled for what the model does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.model.answers import Answer
from conformance.model.state.world import World
from conformance.ops import Operation

Handlers = Mapping[type[Operation], Callable[[World, Any], Answer]]
