"""The domains to choose from: one package each, whose module `domain` holds the constant DOMAIN."""
