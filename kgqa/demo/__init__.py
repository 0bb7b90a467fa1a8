"""The bundled demo graph: common knowledge in the vocabulary of Freebase, with questions about it; and documents.

`python -m scripts.demo_graph` writes `graph.nt` from the tables in `facts/`. `questions.jsonl` contains questions with
gold answers, queries and relation paths. `python -m scripts.demo_formats` writes the same questions in the formats of
published data sets: `cwq.json`, `webqsp.json` and `grailqa.json`.

`corpus/` contains documents about invented islands, for `kgqa corpus build`. `python -m scripts.demo_corpus` writes the
PDF file among them.
"""
