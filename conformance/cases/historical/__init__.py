"""Cases about ABIs that no release has: the RFC, the first commit, the merge window."""
