"""Compare two runs: ``compare`` finds the changes, ``text`` and ``markdown`` show them."""
