"""The consumer group: its members, the partitions assigned to each, and the replicas that this instance holds."""
