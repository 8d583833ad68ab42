"""Tests of pages in a real browser, on demand: `make browser`."""
