"""Facts of the user_events ABI: layouts, numbers, limits, type tables, dated switches.

Data only.  Every fact names the kernel file and function, or the commit title, it was
read from.  Nothing here imports another room.
"""
