"""Tools of distributions that trace events: perf, trace-cmd, bpftrace."""
