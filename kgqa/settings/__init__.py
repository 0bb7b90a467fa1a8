"""Settings: their table, the values from all sources, files of settings, kept keys."""
