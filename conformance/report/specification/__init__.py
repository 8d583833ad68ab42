"""The cases as a specification, and the ABI tables."""
