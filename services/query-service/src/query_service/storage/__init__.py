"""What one instance keeps: the stores of its partitions on disk or in memory, and how records come into them."""
