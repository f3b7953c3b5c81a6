"""Creates the topics that a file declares, and checks those that exist against it."""
