"""Who is in the group, which partitions are whose, and what this instance opens and lets go of."""
