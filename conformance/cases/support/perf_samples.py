"""Payloads of an event `u32 a`, and the perf samples that they produce."""

from __future__ import annotations

A = b"\x41\0\0\0"
A_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 41 00 00 00"
B_SAMPLE = "SAMPLE misc 1 size 24 raw 12: 42 00 00 00"
