"""What is asked of the query service: which instance, in which words, and what its answers mean."""
