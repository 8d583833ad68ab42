"""What runs inside the guest: init, the supervisor (process 1) and its actors.

Python's standard library only, and as little of it as possible: every import is read over 9p by
an emulated processor.
"""
