"""Results as data, and the directory of a run.

``outcome`` has the terms, ``case_result`` and ``run`` are the data, ``judging`` decides;
``journal`` records cases as they end, ``replay`` reads the journal; ``results_json`` is the whole
run in one document, ``stored_outcomes`` and ``summary`` are extracts; ``stored_runs`` finds and
reads runs.
"""
