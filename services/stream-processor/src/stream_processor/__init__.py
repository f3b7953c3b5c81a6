"""Keeps grouped state in keyed topics: pipelines from YAML files on Spark's real-time mode."""
