"""What several case files share: events, programs and tables of definitions."""
