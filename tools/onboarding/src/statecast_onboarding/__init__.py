"""A table of a team's own: `statecast import` writes the files for it, `statecast doctor` says what will not work."""
