"""The commands of `kgqa graph`."""
