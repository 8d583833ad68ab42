"""Transition: see files, trace_pipe, transfers."""

from conformance.ops.files import MakeDirectory as MakeDirectory
from conformance.ops.files import RemoveDirectory as RemoveDirectory
from conformance.ops.files import WritePid as WritePid
from conformance.ops.trace_pipe import ReadPage as ReadPage
from conformance.ops.trace_pipe import ReadPipe as ReadPipe
from conformance.ops.transfers import SubmitWrite as SubmitWrite
