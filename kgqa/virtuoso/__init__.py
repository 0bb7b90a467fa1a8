"""Installs, starts and stops a Virtuoso server of the user, and loads RDF files and the Freebase dump into it."""
