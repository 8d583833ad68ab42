"""`uevt matrix`: many kernels on many machines, by dask.distributed."""
