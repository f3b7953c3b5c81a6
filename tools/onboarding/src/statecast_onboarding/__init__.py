"""A team's own table: `statecast import` writes the files for it, `statecast doctor` finds problems in advance."""
