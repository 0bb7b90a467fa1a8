"""The bundled demo graph: a small world of common knowledge in Freebase's vocabulary, and questions about it.

`graph.nt` is what programs open; it is written by `python -m kgqa.demo.build` from the tables in `facts/`.
`questions.jsonl` holds questions with their gold answers, queries and relation paths over that graph. `cwq.json`,
`webqsp.json` and `grailqa.json` are the same questions in the formats of published question sets, written by
`python -m kgqa.demo.formats`.
"""
