"""Recorder of a program's user_events calls: its source in C, and the recording that it writes."""
