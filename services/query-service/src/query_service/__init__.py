"""Materializes keyed topics and answers gRPC lookups on them, from any instance."""
