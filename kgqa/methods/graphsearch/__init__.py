"""GraphSearch (arXiv 2509.22009): sub-questions over two channels, and a draft that is verified."""
