"""Settings template and install script of Virtuoso, read with importlib.resources as `kgqa.virtuoso_files`."""
