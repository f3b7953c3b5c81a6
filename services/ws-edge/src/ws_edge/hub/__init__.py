"""What is watched, who watches it, when it is read, and what waits to be told; one read however many watch."""
