"""The command line of kgqa, with one module per command; no other package prints."""
