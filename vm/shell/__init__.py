"""Programs of the user in a guest: with the host's programs, and a directory of the host."""
