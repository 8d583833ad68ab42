"""Cases about the uapi header: numbers, sizes and layouts."""
