"""What unit tests of the edge stand on; nothing in the service imports it."""
