"""Parsers and printers: definitions, filters, numbers, globs."""
