"""Two runs told apart: ``compare`` finds what changed, ``page`` and ``markdown`` show it."""
