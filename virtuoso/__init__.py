"""Virtuoso configuration and scripts, read with importlib.resources as `kgqa.virtuoso_files`."""
