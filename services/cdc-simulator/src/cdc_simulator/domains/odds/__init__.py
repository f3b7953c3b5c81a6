"""The bookmaker: matches, and the markets on which they can be bet."""
