"""The command `uevt`: one module per subcommand."""
