"""A Virtuoso server of your own: installed, started, filled, stopped."""
