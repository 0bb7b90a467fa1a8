"""The bundled demo graph: common knowledge in the vocabulary of Freebase, with questions about it.

`graph.nt` is written by `python -m scripts.demo_graph` from the tables in `facts/`. `questions.jsonl` holds questions
with gold answers, queries and relation paths. `cwq.json`, `webqsp.json` and `grailqa.json` are the same questions in
published formats, written by `python -m scripts.demo_formats`.
"""
