"""Keeping and rendering results: from ``RunRecord`` to files, text and exit codes.

``record`` is a run as data, ``journal`` keeps cases as they end, ``results``, ``junit``
and ``ktap`` write the files other programs read, ``failure`` and ``terminal`` are for
people, ``exits`` is the table of exit codes.  ``compare`` tells two runs apart (``page`` and
``markdown`` show it), ``history`` many of them, which ``store`` knows.  Nothing here knows
how a guest boots or how a case is run.
"""
