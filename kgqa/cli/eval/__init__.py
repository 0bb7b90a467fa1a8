"""`kgqa eval` and `kgqa score`."""
