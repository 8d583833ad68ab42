"""Running programs: executors, the lock-step comparison, and typed helpers for cases.

An executor performs operations; there is one for the model and one for a guest that is
reached through a channel of generic system calls.  ``lockstep`` runs both and compares
after every operation.  ``user_events`` is what a case sees.
"""
