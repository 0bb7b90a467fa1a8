"""`kgqa virtuoso` and `kgqa freebase`."""
