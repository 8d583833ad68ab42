"""Render results.

``failure`` is one result that deviates; ``terminal`` shows a run to its user, ``export`` writes it
for other programs, ``compare`` compares two, ``history`` searches many, ``matrix`` puts runs of
several kernels side by side, ``html`` and ``specification`` are pages.
Nothing here knows how a guest boots or how a case is run.
"""
