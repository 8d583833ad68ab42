"""What runs inside the guest: init, the supervisor (process 1) and its actors.

Python's standard library only, and as little of it as possible: every import is read over 9p by
an emulated processor.  What is asked most is C, in native/.
"""

#: What that is compiled to, below this directory.
LIBRARY = "__pycache__/engine.so"
