"""Files and caches: written whole, locked, and read with checks."""
