"""`statecast plan` and `statecast apply`: make a system match the files of its domains."""
