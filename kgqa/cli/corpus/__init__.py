"""The commands of `kgqa corpus`."""
