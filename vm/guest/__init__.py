"""The guest's half of the agent: init, the supervisor (process 1) and its actors.

It imports little, and only from the standard library: imports are slow under emulation.  The fast
path is C, in native/.
"""

#: The compiled native engine, relative to this directory.
LIBRARY = "__pycache__/engine.so"
