"""The pytest plugin: a run from its options to its results."""
