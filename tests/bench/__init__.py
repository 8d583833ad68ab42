"""What the harness costs, measured beside what else there is: `make bench`."""
