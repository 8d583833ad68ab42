"""The cases: every function here proves one sentence about user_events.

A file holds one surface.  A case asserts at least one literal about the kernel's answer,
written in the case itself: number, errno name or exact bytes.  What it does besides is
compared with the model after every operation, so a case need not assert everything.
"""
