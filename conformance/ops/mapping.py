"""Transition: see memory."""

from conformance.ops.memory import Discard as Discard
from conformance.ops.memory import MemoryFile as MemoryFile
from conformance.ops.memory import Mremap as Mremap
from conformance.ops.memory import Truncate as Truncate
