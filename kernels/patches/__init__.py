"""Patches: mails, diffs, series and semantic patches."""
