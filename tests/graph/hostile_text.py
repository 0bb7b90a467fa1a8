"""Hostile text: fragments of SPARQL and of server languages, control characters and invisible characters."""

from __future__ import annotations

from hypothesis import strategies as st

FRAGMENTS = (
    '"', "'", '"""', "'''", "\\", '\\"', "\\\\", "\\n", "\n", "\r\n", "\t", "\x00", "\x08", "\x1b[2J", "\x7f", "\x85",
    "\\u0022", "\\u005C", "\\U00000022", "\\u003E", "\\uD800", "\ud800", "\udcff", "%22", "%3E", "%00", "&quot;", "&#34;",
    "<", ">", "{", "}", "(", ")", "[", "]", "|", "^", "`", "#", "# ", ".", ";", ",", "?x", "$x", "??", ":", "@en", "^^",
    "}} UNION {{", "} UNION { ?s ?p ?o }", "} #", "> ?p ?o . } #", '" . } #', "*/", "/*", "--", "; DROP ALL ;",
    "DROP SILENT GRAPH <http://e/x>", "CLEAR ALL", "LOAD <http://127.0.0.1:9/x>", "SERVICE <http://127.0.0.1:9/> { ?s ?p ?o }",
    "INSERT DATA { GRAPH <http://e/hacked> { <http://e/a> <http://e/b> <http://e/c> } }", "DELETE WHERE { ?s ?p ?o }",
    'DEFINE input:grab-all "yes"', "define sql:signal-void-variables 0", "PREFIX e: <http://e/>", "BASE <http://e/>",
    "SELECT * WHERE { ?s ?p ?o }", "FILTER(true)", "OPTION(TRANSITIVE)", "LIMIT 0", "OFFSET 1", "FROM <http://e/x>",
    "bif:sys_dirlist('.')", "sql:shell('id')", "<bif:exec>", "bif:contains", "`bif:shutdown()`", "sql:SPARQL_DAV_DATA_URI",
    "' OR 1=1 --", "'; SHUTDOWN; --", "AND", "OR", "NOT", "NEAR", "near/3", "*", "**", "a*", '"a" AND "b"', "norm:", "name MATCH",
    "{{ 7*7 }}", "{% for x in y %}", "{#", "#}", "${x}", "%s", "%(x)s", "{0.__class__}",
    "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\u2029", "\u061c", "\ufffe", "\uffff", "\U0001f600", "\U000e0041", "\U0010ffff",
    "e\u0301", "\u1e9e", "\u0130", "\ufb01", "\u0660", "\u00a0", "\u3000", "nodeID://b10001", "_:b0", "urn:x", "http://e/ann", "ann", "Ann Lee",
    "javascript:alert(1)", "file:///etc/passwd", "../../etc/passwd", "x" * 300,
)  # fmt: skip

characters = st.characters(exclude_categories=[])  # includes lone surrogates and unassigned characters
hostile_texts = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=5).map("".join),
    st.lists(st.sampled_from(FRAGMENTS), min_size=2, max_size=4).map(" ".join),
    st.builds(
        "{}{}{}".format, st.text(characters, max_size=4), st.sampled_from(FRAGMENTS), st.text(characters, max_size=4)
    ),
    st.text(characters, min_size=1, max_size=30),
)
"""Hostile names, ids and labels."""
