"""The steps from a source record to the records of a sink, as functions from DataFrame to DataFrame."""
