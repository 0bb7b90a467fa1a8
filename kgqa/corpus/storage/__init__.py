"""The SQLite file of a corpus: its texts, its edit log, and what the build remembers."""
