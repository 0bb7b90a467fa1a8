"""The checks of `kgqa doctor`."""
