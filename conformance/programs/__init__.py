"""A program of the user, judged by the model from a recording of its system calls."""
