"""The folder, virtuoso.ini, process, log and SQL client of one Virtuoso server."""
