"""The edge as a client of the query service: queries, results and the freshness of the shard map."""
