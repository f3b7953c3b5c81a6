"""Runs pipelines: the Spark session, the queries, their checkpoints, and how they are watched and stopped."""
