"""Client of the kernel: typed helpers for cases, executors, and the lock-step comparison.

An executor performs operations: on the model, or in a guest through a channel of generic system
calls.  ``lockstep`` runs both and compares after every operation.  ``user_events`` is what a case
uses.
"""
