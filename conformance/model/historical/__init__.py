"""Rules of ABIs that no release has."""
