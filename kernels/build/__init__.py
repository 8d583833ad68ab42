"""Building and configuring kernels and modules."""
