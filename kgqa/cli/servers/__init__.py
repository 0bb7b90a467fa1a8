"""The commands of `kgqa virtuoso` and `kgqa freebase`."""
