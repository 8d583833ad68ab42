"""The conformance suite: what the user_events ABI says, and whether a kernel conforms.

docs/architecture.md lists the packages.
"""
