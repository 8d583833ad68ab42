"""The kernel's log: lines, reports and stack traces."""
