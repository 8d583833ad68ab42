"""The history of outcomes over many runs."""
