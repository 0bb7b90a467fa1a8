"""A gold query translated into one candidate: a path, joins, conditions and an operation.

The variables of the query must form a tree. One walk through the tree, from the variable that the query asks for, gives
a chain of steps to each end of the tree. One chain, backwards, is the path from the topic; what hangs beside the path
becomes joins (ends in another topic) and conditions. Not translated: the filter that two variables are unequal (the
walk rule of the graph decides), filters on the language of names, what is optional, and whether two conditions on one
variable must hold for the same value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgqa.model import Candidate, Entity, Join, Literal, RelationPath, Step
from kgqa.model.conditions import (
    DAY,
    MAX_RANK,
    MONTH,
    NUMBER_TEXT,
    NUMBERS,
    XSD,
    YEAR,
    Comparison,
    Condition,
    Operation,
    OperationKind,
)
from kgqa.training.gold_queries import (
    Untranslatable,
    edges_of,
    ensure,
    is_entity,
    is_variable,
    name_of,
    nodes_in,
    parsed,
    parts,
    read_group,
)

OPPOSITE: dict[str, Any] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_KINDS: Mapping[str, OperationKind] = {
    "Aggregate_Count": "count", "Aggregate_Sum": "sum", "Aggregate_Avg": "average", "Aggregate_Max": "most",
    "Aggregate_Min": "least",
}  # fmt: skip
_NUMBERS = frozenset({"double", "decimal", "integer", "float"})
_DATES = frozenset({"STR", "YEAR", "dateTime", "date", "datetime", "gYear", "gYearMonth"})
_ON_LANGUAGE = frozenset({"Builtin_isLITERAL", "Builtin_LANG", "Builtin_LANGMATCHES"})
_LOGICAL = frozenset({"ConditionalOrExpression", "ConditionalAndExpression", "UnaryNot", "RelationalExpression"})
_IDLE = frozenset({"OptionalGraphPattern", "Builtin_isIRI", "Builtin_isURI"})
_TIME = r"T(?:00:00(?::00(?:\.0+)?)?|([0-9:.]+))"  # midnight means that no time is given
_DATE = re.compile(rf"(-?[0-9]{{4,6}})(?:-([0-9]{{2}})(?:-([0-9]{{2}})(?:{_TIME})?(?:[TZ+-].*)?)?)?")
_YEAR_BOUNDS = frozenset({("01", "01", "<"), ("01", "01", ">="), ("12", "31", ">"), ("12", "31", "<=")})
_SEVERAL = "several conditions on a node beside the path"

_Steps = tuple[Step, ...]
_Chain = tuple[_Steps, tuple[Any, ...]]
"""Steps, and the terms that they lead to."""
_Edges = Mapping[Any, Sequence[tuple[Step, Any]]]
_Tests = Mapping[Any, Sequence[Condition]]
"""Conditions by their variable; their `at` is not used."""


def gold_candidate(
    sparql: str, topics: Sequence[str] = (), *, is_date: Callable[[str], bool] = lambda relation: False
) -> Candidate:
    """Translate a gold query into a candidate, without wording.

    Args:
        sparql: the gold query.
        topics: IRIs of the topics; other entities of the query are used if they lead to no translation.
        is_date: whether the values of a relation are dates; decides how values are ordered that are not cast.

    Raises:
        Untranslatable: there is no such candidate.
    """
    return _Translator(parsed(sparql), topics, is_date).candidate()


class _Translator:
    """Translates one query."""

    def __init__(self, query: Any, topics: Sequence[str], is_date: Callable[[str], bool]) -> None:
        self._topics = topics
        self._is_date = is_date
        self._facts, self._parts = read_group(query.where)
        self._tests: dict[Any, list[Condition]] = {}
        self._operation: Any = None  # an `Operation` without the steps to its value; `at` is not used
        self._ordered: Any = None  # the variable that rows are ordered by, or whose values are added up
        self._casts: tuple[str, ...] = ()
        self._answer = self._end_of_ask() if query.name == "AskQuery" else self._read_answer(query)
        self._read_order(query)
        for part in self._parts:  # grows by the parts of groups that a filter requires
            self._read(part)

    # ---- what is asked for ----

    def _read_answer(self, query: Any) -> Any:
        """Return the variable that the query asks for, or the expression that compares two topics."""
        ensure(query.projection, "SELECT *")
        first = query.projection[0]
        asked = first.expr if "expr" in first else first.var
        if name_of(asked) in _KINDS:
            self._operation = Operation(_KINDS[name_of(asked)])
            self._ordered = None if self._operation.kind == "count" else asked.vars
            return asked.vars
        return next((part.expr for part in self._parts if name_of(part) == "Bind" and part.var == asked), asked)

    def _end_of_ask(self) -> Any:
        """Return a variable at the end of the pattern; the object of the last fact if the pattern has no variable."""
        from rdflib import Variable

        self._operation = Operation("exists")
        ensure(self._facts, "no facts")
        variables = [value for _, _, value in self._facts if is_variable(value)]
        if variables:
            return variables[-1]
        subject, step, value = self._facts.pop()
        end = Variable("end")
        self._facts.append((subject, step, end))
        self._tests[end] = [Condition(1, (), _constant(value))]
        return end

    def _read_order(self, query: Any) -> None:
        computed = self._operation or not is_variable(self._answer)
        ensure("having" not in query and "valuesClause" not in query, "HAVING, or VALUES after the pattern")
        ensure("groupby" not in query or not computed, "a value per group")
        if "limitoffset" not in query:
            return
        limits = query["limitoffset"]
        keys = query["orderby"].condition if "orderby" in query else []
        rank = int(limits["offset"]) + 1 if "offset" in limits else 1
        ensure(len(keys) == 1 and not computed, "LIMIT without order by one value")
        ensure("limit" in limits and int(limits["limit"]) == 1 and rank <= MAX_RANK, "several of an order")
        key, self._casts = _uncast(keys[0]["expr"])
        key = next((each["expr"] for each in query.projection if "expr" in each and each["evar"] == key), key)
        counted = name_of(key) == "Aggregate_Count"
        self._ordered = key.vars if counted else key
        kind: OperationKind = "most" if "order" in keys[0] and keys[0]["order"] == "DESC" else "least"
        self._operation = Operation(kind, counted=counted, rank=rank, at=1 if counted else None)

    # ---- filters and other parts of the pattern ----

    def _read(self, part: Any) -> None:
        match name_of(part):
            case _ if _is_about_language(part):
                pass
            case "RelationalExpression" if part.op == "!=" and is_variable(part.other):
                pass
            case "RelationalExpression":
                variable, condition = _tested(part)
                self._tests.setdefault(variable, []).append(condition)
            case "InlineData":
                ensure(len(part.var) == len(part.value or ()) == 1, "list of values")
                self._tests.setdefault(part.var[0], []).append(Condition(1, (), _constant(part.value[0])))
            case "Builtin_NOTEXISTS" | "MinusGraphPattern":
                self._negate(part.graph)
            case "Builtin_EXISTS":
                facts, inner = read_group(part.graph)
                self._facts += facts
                self._parts += inner
            case "ConditionalOrExpression":
                # a fact is absent, or its value fulfils a comparison: no value fulfils the opposite
                either = {name_of(each): each for each in parts(part, "ConditionalOrExpression")}
                ensure(either.keys() == {"Builtin_NOTEXISTS", "Builtin_EXISTS"}, "alternatives")
                self._negate(either["Builtin_EXISTS"].graph, unless=either["Builtin_NOTEXISTS"].graph)
            case "Bind":
                ensure(part.expr is self._answer, "computed value")
            case name:
                ensure(name in _IDLE, f"pattern or filter {name}")

    def _negate(self, pattern: Any, *, unless: Any = None) -> None:
        """Add that a chain from a variable of the query has no match.

        With `unless`, the same chain without its comparison, the chain has no match with the opposite comparison.
        """
        facts, filters = read_group(pattern)
        if unless is not None:
            absent, more = read_group(unless)
            same = [step for _, step, _ in facts] == [step for _, step, _ in absent]
            ensure(same and not more and filters, "alternatives")
        edges = edges_of(facts)
        roots = [term for term in edges if is_variable(term) and term in edges_of(self._facts)]
        ensure(len(roots) == 1, "comparison of two values")
        chains = list(_chains(edges, roots[0]))
        tests = {
            variable: [condition] for variable, condition in (_tested(each, unless is not None) for each in filters)
        }
        ensure(len(chains) == 1 and len(filters) < 2, "absence of several facts")
        steps, nodes = chains[0]
        ensure(tests.keys() <= {nodes[-1]}, "comparison of two values")
        (test,) = _end_tests(edges, nodes, tests)
        self._tests.setdefault(roots[0], []).append(Condition(1, steps, test, True))

    # ---- the candidate ----

    def candidate(self) -> Candidate:
        """Return the candidate with the first topic that gives one."""
        edges = edges_of(self._facts)
        if not is_variable(self._answer):
            return self._comparison_of_topics(edges)
        ensure(all(is_variable(one) or is_variable(other) for one, _, other in self._facts), "fact without a variable")
        chains = list(_chains(edges, self._answer))
        reached = {self._answer, *(node for _, nodes in chains for node in nodes)}
        ensure(reached >= self._tests.keys() | edges.keys(), "unconnected parts")
        excluded = [each.test for each in self._tests.get(self._answer, ()) if each.negated and not each.steps]
        given = sorted(self._topics, key=lambda topic: Entity(topic) not in excluded)
        ends = [_end_tests(edges, nodes[-1:], self._tests)[0] for _, nodes in chains]
        starts = [(end.iri, chain) for end, chain in zip(ends, chains) if isinstance(end, Entity)]
        preferred = [*given, *map(str, edges), *(topic for topic, _ in starts)]
        reason = Untranslatable("no topic")
        for topic, start in sorted(starts, key=lambda start: preferred.index(start[0])):
            try:
                return self._from(topic, start, [chain for chain in chains if chain is not start], edges)
            except Untranslatable as error:
                reason = error
        raise reason

    def _from(self, topic: str, start: _Chain, others: Sequence[_Chain], edges: _Edges) -> Candidate:
        """Return the candidate whose path leads along a chain, from its end in the topic to the answer."""
        steps = _backwards(start[0])
        nodes = [*start[1][-2::-1], self._answer]
        operation = None if self._ordered else self._operation
        conditions = [replace(each, at=at) for at, node in enumerate(nodes, 1) for each in self._tests.get(node, ())]
        joins: list[Join] = []
        for chain, passed in others:
            shared = sum(node in nodes for node in passed)
            at = len(nodes) - shared
            beside = chain[shared:]
            found = _end_tests(edges, passed[shared:], self._tests)
            if self._ordered in passed[shared:]:
                ensure(self._ordered == passed[-1] and found == [None], _SEVERAL)
                operation = self._extreme(beside, beside[-1], None if at == len(nodes) else at)
                continue
            for test in found:
                if isinstance(test, Entity) and test.iri in self._topics and test.iri != topic:
                    joins.append(Join(at, RelationPath(test, _backwards(beside))))
                else:
                    conditions.append(Condition(at, beside, test))
        # the walk rule keeps the ends of a path apart from its topic, and from those of the paths that it meets
        known = {Entity(topic), *(join.path.topic for join in joins)}
        conditions = [each for each in conditions if each.steps or not each.negated or each.test not in known]
        conditions.sort(key=lambda each: (each.negated and not each.steps, each.at))
        joins.sort(key=lambda join: join.at)
        if self._ordered == self._answer:
            on_last = any(condition.at == len(nodes) for condition in conditions) or len(nodes) == 1
            way = () if on_last or not self._operation.is_computed else steps[-1:]
            operation = self._extreme(way, steps[-1])
            steps = steps[: len(steps) - len(way)]  # values of several ends are added up though they are equal
        ensure(operation or not self._ordered, "order by a node of the path")
        return Candidate(
            RelationPath(Entity(topic), steps),
            "",
            joins=tuple(joins),
            conditions=tuple(dict.fromkeys(conditions)),
            operation=operation,
        )

    def _comparison_of_topics(self, edges: _Edges) -> Candidate:
        """Return the candidate of `ABS(?value_of_a - ?value_of_b)` or `IF(?value_of_a > ?value_of_b, a, b)`."""
        asked = self._answer.arg if name_of(self._answer) == "Builtin_ABS" else self._answer
        chosen = asked.arg1 if name_of(asked) == "Builtin_IF" else None
        ensure((chosen or name_of(asked) == "AdditiveExpression") and not self._tests, "computed value")
        one, operator, other, _ = _sides(chosen or asked)
        ensure(is_variable(other) and operator in ("<", ">", "-"), "computed value")
        chains = [chain for value in (one, other) for chain in _chains(edges, value)]
        ensure(len(chains) == 2 and chains[0][0] == chains[1][0], "comparison of two values")
        steps = _backwards(chains[0][0])
        topics = tuple(Entity(str(nodes[-1])) for _, nodes in chains)
        named = (Entity(str(asked.arg2)), Entity(str(asked.arg3))) if chosen else topics
        ensure({*named} == {*topics}, "comparison of two values")
        operation = Operation("difference", steps, topics=topics)
        if chosen:
            self._operation = Operation("most" if (operator == ">") == (named == topics) else "least")
            operation = replace(self._extreme(steps, steps[-1]), topics=named)
        return Candidate(RelationPath(named[0]), "", operation=operation)

    def _extreme(self, steps: _Steps, last: Step, at: int | None = None) -> Operation:
        """Return the operation on the value at the end of some steps; `last` leads to the value."""
        drawn: Operation = self._operation
        names = {cast.removeprefix(XSD) for cast in self._casts}
        dates = names & _DATES or (not names & _NUMBERS and self._is_date(last.relation))
        is_date = dates and not drawn.is_computed and not drawn.counted
        return replace(drawn, steps=steps, scale="day" if is_date else "number", at=at)


# ---- expressions ----


def _is_about_language(expression: Any) -> bool:
    names = {name_of(node) for node in nodes_in(expression)} - {""}
    return bool(names & _ON_LANGUAGE) and names <= _ON_LANGUAGE | _LOGICAL


def _uncast(expression: Any) -> tuple[Any, tuple[str, ...]]:
    """Return an expression without conversions, and the names of the conversions."""
    name = name_of(expression)
    if name == "Function" and len(expression.expr) == 1 and str(expression.iri).startswith(XSD):
        cast, inner = str(expression.iri), expression.expr[0]
    elif name in ("Builtin_STR", "Builtin_YEAR"):
        cast, inner = name.removeprefix("Builtin_"), expression.arg
    else:
        return expression, ()
    inner, casts = _uncast(inner)
    return inner, (cast, *casts)


def _sides(expression: Any) -> tuple[Any, str, Any, tuple[str, ...]]:
    """Return the variable of a comparison, the operator, the value, and the names of the conversions of both."""
    operator, other = expression.op, expression.other
    if isinstance(other, list) and len(other) == 1:  # `IN (value)`, or `- value`
        operator, other = "=" if operator == "IN" else "-", other[0]
    left, left_casts = _uncast(expression.expr)
    right, right_casts = _uncast(other)
    if is_variable(right) and not is_variable(left):
        left, operator, right = right, _MIRRORED.get(operator), left
    ensure(is_variable(left), "comparison of computed values")
    return left, operator, right, left_casts + right_casts


def _tested(expression: Any, opposite: bool = False) -> tuple[Any, Condition]:
    """Return the variable of a comparison with a constant, and the condition on the variable."""
    ensure(name_of(expression) == "RelationalExpression", "alternatives")
    variable, operator, value, casts = _sides(expression)
    ensure(operator in OPPOSITE, f"filter {operator}")
    if is_entity(value) and operator in ("=", "!="):
        return variable, Condition(1, (), _constant(value), operator == "!=")
    return variable, Condition(1, (), _comparison(OPPOSITE[operator] if opposite else operator, value, casts))


def _comparison(operator: Any, value: Any, casts: Sequence[str]) -> Comparison:
    """Return a comparison; the first or last day of a year is compared as its year where that is the same."""
    ensure(type(value).__name__ == "Literal", "comparison of two values, or of computed values")
    text, datatype = str(value), str(value.datatype or "")
    names = {name.removeprefix(XSD) for name in (*casts, datatype)}
    ordered = operator not in ("=", "!=")
    dated = names & _DATES or (ordered and "-" in text[1:])
    if dated and (found := _DATE.fullmatch(text.zfill(4) if "YEAR" in names else text)):
        *day, time = found.groups()
        ensure(not time or (time == "23:59:59" and operator in (">", "<=")), "time of day")
        whole_year = (day[1], day[2] or "01", operator) in _YEAR_BOUNDS
        known = day[:1] if whole_year else [each for each in day if each]
        return Comparison(operator, Literal("-".join(known), (YEAR, MONTH, DAY)[len(known) - 1]))
    is_number = re.fullmatch(NUMBER_TEXT, text) and (ordered or datatype in NUMBERS)
    ensure(is_number or not ordered, "comparison of other values")
    return Comparison(operator, Literal(text, XSD + "decimal") if is_number else Literal(text))


def _constant(term: Any) -> Entity | Comparison:
    return Entity(str(term)) if is_entity(term) else Comparison("=", Literal(str(term)))


# ---- the tree of variables ----


def _chains(edges: _Edges, node: Any, passed: tuple[Any, ...] = (), back: Any = None) -> Iterator[_Chain]:
    """Yield the chain of steps from a variable to each end of the tree of variables."""
    ensure(node in edges and node not in passed, "cycle, or unconnected parts")
    onward = [edge for edge in edges[node] if edge != back] if is_variable(node) else []
    if not onward:
        yield (), ()
    for step, other in onward:
        for steps, nodes in _chains(edges, other, (*passed, node), (step.reversed(), node)):
            yield (step, *steps), (other, *nodes)


def _end_tests(edges: _Edges, nodes: Sequence[Any], tests: _Tests) -> list[Entity | Comparison | None]:
    """Return the tests of the node at the end of a chain; None if any node will do. Nothing else hangs on the chain."""
    *inner, end = nodes
    found = tests.get(end, ())
    alone = not any(node in tests or len(edges[node]) > 2 for node in inner)
    ensure(alone and not any(each.steps or each.negated for each in found), _SEVERAL)
    return [each.test for each in found] or [None if is_variable(end) else _constant(end)]


def _backwards(steps: _Steps) -> _Steps:
    return tuple(step.reversed() for step in reversed(steps))
