"""Facts of the user_events ABI: layouts, numbers, limits, types, dated switches.

Data only, without imports of other rooms.  Every fact names its source: a kernel file and function,
or the title of a commit.
"""
