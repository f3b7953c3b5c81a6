"""What all edges share, kept in topics: channels and revocations."""
