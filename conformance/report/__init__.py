"""Keeping and rendering results: from ``RunRecord`` to files, text and exit codes.

``record`` is a run as data, ``journal`` keeps cases as they end, ``results``, ``junit``
and ``ktap`` write the files other programs read, ``kselftest``, ``kcidb`` and ``github`` render
what others ask for, ``failure`` and ``terminal`` are for people, ``exits`` is the table of exit
codes.  ``compare`` tells two runs apart (``page`` and ``markdown`` show it), ``history`` many of
them, which ``store`` knows.  ``matrix`` puts runs of several kernels side by side, ``story`` is
what there is to tell of them, and ``html``, ``matrix_markdown`` and ``matrix_text`` tell it.
Nothing here knows how a guest boots or how a case is run.
"""
