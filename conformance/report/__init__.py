"""Keeping and rendering results: from ``RunRecord`` to files, text and exit codes.

Here is what all share: ``text`` and ``markup`` for what is printed, ``files`` for what is written,
``failure`` for one unexpected result, ``exits`` and ``errors`` for how a command ends.  ``run`` is
a run as data, and its directory.  Above it, each for itself: ``screen`` shows a run to who
waits for it, ``export`` writes it for other programs, ``matrix`` puts runs of several kernels
side by side, ``history`` asks many of one kernel, and ``comparison``, which asks the history
what is flaky, tells two apart.
Nothing here knows how a guest boots or how a case is run.
"""
