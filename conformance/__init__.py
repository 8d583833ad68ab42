"""The conformance suite: what the user_events ABI says and whether a kernel does it.

``abi`` holds facts, ``program`` the operations a client can perform, ``model`` the
reference answer to each of them, ``sut`` runs a program on model and kernel in lock
step, ``cases`` are the statements to be proved.  ``plugin`` and ``cli`` are the only
places where these rooms meet a booted kernel.
"""
