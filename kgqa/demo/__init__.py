"""The bundled demo graph: common knowledge in the vocabulary of Freebase, with questions about it.

`graph.nt` is written by `python -m scripts.demo_graph` from the tables in `facts/`. `questions.jsonl` holds questions
with gold answers, queries and relation paths. `cwq.json`, `webqsp.json` and `grailqa.json` hold the same questions in
the formats of published data sets, written by `python -m scripts.demo_formats`.
"""
