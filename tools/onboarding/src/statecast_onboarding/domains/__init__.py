"""`statecast plan` and `statecast apply`: a system is made what the files of its domains say."""
