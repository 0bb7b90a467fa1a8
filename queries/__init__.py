"""SPARQL templates, read with importlib.resources as `kgqa.queries`."""
