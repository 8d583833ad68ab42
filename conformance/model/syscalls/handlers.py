"""Type of the tables that map kinds of operations to the rules of the model.

A rule applies an operation of a process to one state and returns that state's answer.  It raises
Errno for a system call that fails and NotModelled for what the model does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.model.answers import Answer
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.ops import Operation

Handlers = Mapping[type[Operation], Callable[[World, Process, Any], Answer]]
