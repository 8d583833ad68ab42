"""The command `uevt`: one module per subcommand."""

import sys

# PYTHONDONTWRITEBYTECODE has no effect: to compile the modules takes longer than most commands.
sys.dont_write_bytecode = False
