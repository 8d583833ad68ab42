"""Run one case after another on one guest."""
