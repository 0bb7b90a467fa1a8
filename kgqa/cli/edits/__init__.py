"""The commands of `kgqa edits`."""
