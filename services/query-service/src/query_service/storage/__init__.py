"""The stores of an instance's partitions, on disk or in memory, and how records are applied to them."""
