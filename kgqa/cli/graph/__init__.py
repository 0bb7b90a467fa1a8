"""`kgqa graph`."""
