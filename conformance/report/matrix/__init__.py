"""Runs of several kernels side by side: the report.

``table`` is kernels by cases, ``story`` what there is to tell of it; ``html``, ``markdown`` and
``text`` tell it.
"""
