"""A run for the person who started it: while it goes on, and when it is over."""
