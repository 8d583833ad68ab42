"""A run as data, and the directory that keeps it: its files, and what else is asked of one run.

``record`` is the data, ``journal`` keeps cases as they end and ``replay`` reads them again,
``results`` is the whole in one document, ``brief`` and ``summary`` are less of it.
"""
