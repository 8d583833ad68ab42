"""Tests of the HTML pages in a real browser: `make browser`."""
