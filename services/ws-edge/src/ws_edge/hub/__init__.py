"""What is watched and by whom, when it is read, and what waits to be sent: one read, however many watch."""
