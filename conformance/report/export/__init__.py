"""Runs in the forms of other programs, each module one form.

A function that renders takes records and gives text: the same at the end of a run and later.
"""
