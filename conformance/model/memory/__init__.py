"""Memory of processes: pages, and address spaces of them."""
