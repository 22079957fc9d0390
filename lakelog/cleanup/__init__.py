"""Deletes from the cold tier and keeps it fast to read: retain, compact, optimize, vacuum.

Each step is a plan over one snapshot, decided without I/O, and a commit that stands or falls by
what others committed meanwhile. Nothing here knows the hot tier.
"""

#: What a cleanup does, in this order.
STEPS = ("retain", "compact", "optimize", "vacuum")
