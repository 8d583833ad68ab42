"""HTML pages and their templates."""
