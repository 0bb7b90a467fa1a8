"""Parts of Tournament on Path: how a question is read, the ranking and the search of paths, the judge, the answer."""
