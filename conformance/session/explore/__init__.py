"""Explore: random programs in lock step with the model, shrunk where the two differ."""
