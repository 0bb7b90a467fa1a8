"""A gold query translated into one candidate: a path, joins, conditions and an operation.

The variables of the query must form a tree. The path leads from a topic through the tree to the variable that the query
asks for; what hangs beside the path becomes joins (ends in another topic) and conditions. Not translated: the filter
that two variables are unequal (the walk rule of the graph decides), filters on the language of names, and whether two
conditions on one variable must hold for the same value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Facts,
    Group,
    Untranslatable,
    ensure,
    is_entity,
    is_variable,
    nodes_in,
    parsed,
    parts,
    read_group,
)

OPPOSITE: dict[str, Any] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_KINDS: Mapping[str, OperationKind] = {
    "Aggregate_Sum": "sum", "Aggregate_Avg": "average", "Aggregate_Max": "most", "Aggregate_Min": "least",
}  # fmt: skip
_NUMBERS = frozenset({"double", "decimal", "integer", "float"})
_DATES = frozenset({"dateTime", "date", "datetime", "gYear", "gYearMonth"})
_ON_LANGUAGE = frozenset({"Builtin_isLITERAL", "Builtin_LANG", "Builtin_LANGMATCHES"})
_LOGICAL = frozenset({"ConditionalOrExpression", "ConditionalAndExpression", "UnaryNot", "RelationalExpression"})
_DATE = re.compile(r"(-?[0-9]{4,6})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9:.]+))?(?:[TZ+-].*)?)?)?")
_MIDNIGHT = re.compile(r"00:00(:00)?(\.0+)?")


_Tests = dict[Any, list[Condition]]
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


@dataclass(frozen=True, slots=True)
class _Order:
    """What the query orders its rows by, or adds up."""

    kind: OperationKind
    variable: Any = None
    casts: tuple[str, ...] = ()
    counted: bool = False
    rank: int = 1


class _Translator:
    """Translates one query."""

    def __init__(self, query: Any, topics: Sequence[str], is_date: Callable[[str], bool]) -> None:
        self._topics = topics
        self._is_date = is_date
        self._group = _read(query.where)
        self._tests: _Tests = {}
        self._values: dict[Any, Any] = {}
        self._operation: Operation | None = None
        self._order: _Order | None = None
        self._subtracted: tuple[Any, ...] = ()
        self._answer = self._end_of_ask() if query.name == "AskQuery" else self._read_answer(query)
        self._read_order(query)
        for expression in self._group.filters:  # grows by the filters of groups that a filter makes required
            self._read_filter(expression)
        for variable, values in self._group.values:
            self._fix(variable, values)
        for group in self._group.negated:
            self._negate(group)

    # ---- what is asked for ----

    def _read_answer(self, query: Any) -> Any:
        ensure(query.projection, "SELECT *")
        first = query.projection[0]
        asked = first.expr if "expr" in first else first.var
        name = getattr(asked, "name", "")
        if variables := _difference(asked):
            self._subtracted = variables
            return variables[0]
        if name.startswith("Aggregate_"):
            asked = asked.vars
        if name == "Aggregate_Count":
            self._operation = Operation("count")
        elif name in _KINDS:
            self._order = _Order(
                _KINDS[name], asked, (XSD + "double",) if name in ("Aggregate_Sum", "Aggregate_Avg") else ()
            )
        ensure(is_variable(asked), "computed value")
        return asked

    def _end_of_ask(self) -> Any:
        """Return a variable at the end of the pattern; the object of the last fact if the pattern has no variable."""
        from rdflib import Variable

        self._operation = Operation("exists")
        variables = [value for _, _, value in self._group.edges if is_variable(value)]
        if variables:
            return variables[-1]
        ensure(self._group.edges, "no facts")
        subject, step, value = self._group.edges.pop()
        self._group.edges.append((subject, step, end := Variable("end")))
        if is_entity(value):
            self._values[end] = value
        else:
            self._test(end, _constant(value))
        return end

    def _read_order(self, query: Any) -> None:
        computed = self._operation is not None or self._order is not None
        ensure("having" not in query, "HAVING")
        ensure("valuesClause" not in query, "VALUES after the pattern")
        ensure("groupby" not in query or not computed, "a value per group")
        if "limitoffset" not in query:
            return
        limits = query["limitoffset"]
        keys = query["orderby"].condition if "orderby" in query else []
        rank = int(limits["offset"]) + 1 if "offset" in limits else 1
        ensure(not computed, "order of a computed value")
        ensure(keys, "LIMIT without order")
        ensure("limit" in limits and int(limits["limit"]) == 1, "several of an order")
        ensure(rank <= MAX_RANK, "too far down an order")
        ensure(len(keys) == 1, "order by several values")
        key, casts = _uncast(keys[0]["expr"])
        key = next((each["expr"] for each in query.projection if "expr" in each and each["evar"] == key), key)
        counted = getattr(key, "name", "") == "Aggregate_Count"
        variable = key.vars if counted else key
        ensure(is_variable(variable), "order by a computed value")
        kind: OperationKind = "most" if "order" in keys[0] and keys[0]["order"] == "DESC" else "least"
        self._order = _Order(kind, variable, casts, counted, rank)

    # ---- filters ----

    def _read_filter(self, expression: Any) -> None:
        name = getattr(expression, "name", "")
        if _is_about_language(expression) or name in ("Builtin_isIRI", "Builtin_isURI"):
            return
        if name == "RelationalExpression":
            self._compare(expression)
        elif name == "Builtin_NOTEXISTS":
            self._negate(_read(expression.graph))
        elif name == "Builtin_EXISTS":
            self._group.add(_read(expression.graph))
        elif name == "Builtin_BOUND":
            self._group.add(self._optional_with(expression.arg))
        elif name == "UnaryNot" and getattr(expression.expr, "name", "") == "Builtin_BOUND":
            self._negate(self._optional_with(expression.expr.arg))
        elif name == "ConditionalOrExpression":
            self._read_alternatives(expression)
        else:
            raise Untranslatable(f"filter {name.removeprefix('Builtin_') or 'value'}")

    def _read_alternatives(self, expression: Any) -> None:
        """Read that a value is absent or fulfils a comparison: there is no value that fulfils the opposite."""
        either = {getattr(each, "name", ""): each for each in parts(expression, "ConditionalOrExpression")}
        if either.keys() == {"Builtin_NOTEXISTS", "Builtin_EXISTS"}:
            there, absent = (_read(either[name].graph) for name in ("Builtin_EXISTS", "Builtin_NOTEXISTS"))
            same = [step for _, step, _ in there.edges] == [step for _, step, _ in absent.edges]
            ensure(same and absent == Group(edges=absent.edges), "alternatives")
        else:
            ensure(either.keys() == {"UnaryNot", "RelationalExpression"}, "alternatives")
            compared = either["RelationalExpression"]
            there = replace(self._optional_with(_sides(compared)[0]), filters=[compared])
        ensure(len(there.filters) == 1, "alternatives")
        self._negate(there, opposite=True)

    def _optional_with(self, variable: Any) -> Group:
        found = [group for group in self._group.optional if variable in group.variables]
        ensure(found, "alternatives")
        return found[0]

    def _compare(self, expression: Any) -> None:
        if expression.op == "IN" and len(expression.other) == 1:
            self._fix(expression.expr, expression.other)
            return
        variable, operator, value, casts = _sides(expression)
        if is_variable(value):
            ensure(operator == "!=", "comparison of two values")
        elif is_entity(value) and operator == "=":
            self._fix(variable, [value])
        elif is_entity(value) and operator == "!=":
            self._test(variable, _constant(value), negated=True)
        else:
            self._test(variable, _comparison(operator, value, casts))
            if variable not in self._group.variables:  # the optional group with the variable becomes a required one
                for group in [each for each in self._group.optional if variable in each.variables][:1]:
                    self._group.add(group)

    def _test(
        self, variable: Any, test: Entity | Comparison | None, steps: tuple[Step, ...] = (), negated: bool = False
    ) -> None:
        self._tests.setdefault(variable, []).append(Condition(1, steps, test, negated))

    def _fix(self, variable: Any, values: Sequence[Any]) -> None:
        ensure(len(values) == 1 and is_entity(values[0]), "list of values")
        ensure(self._values.setdefault(variable, values[0]) == values[0], "several values of a variable")

    def _negate(self, group: Group, *, opposite: bool = False) -> None:
        """Add that a chain from a variable of the query has no match."""
        roots = group.variables & self._group.variables
        only = Group(edges=group.edges, filters=group.filters)
        ensure(len(roots) == 1 and group == only, "comparison of two values")
        (root,) = roots
        tests: _Tests = {}
        for each in group.filters:
            ensure(getattr(each, "name", "") == "RelationalExpression", "alternatives")
            variable, operator, value, casts = _sides(each)
            ensure(variable in group.variables - roots and not is_variable(value), "comparison of two values")
            operator = OPPOSITE[operator] if opposite else operator
            tests.setdefault(variable, []).append(Condition(1, (), _comparison(operator, value, casts)))
        facts = Facts(group.edges, {})
        _check_tree(facts, root)
        chains = [chain for edge in facts.edges[root] for chain in _chains(*_branch(facts, root, edge), tests)]
        ensure(len(chains) == 1, "absence of several facts")
        self._test(root, chains[0][1], chains[0][0], negated=True)

    # ---- the candidate ----

    def candidate(self) -> Candidate:
        """Return the candidate with the first topic that gives one.

        A variable that must be a certain entity is replaced by this entity; if there is no candidate then, it becomes
        a condition.
        """
        if self._group.bound or self._subtracted:
            ensure(not self._tests and not self._values, "condition of compared topics")
            ensure(self._operation is None and self._order is None, "order of a computed value")
            return self._comparison_of_topics()
        fixed = {variable: value for variable, value in self._values.items() if variable != self._answer}
        try:
            return self._from_any_topic(Facts(self._group.edges, fixed))
        except Untranslatable:
            if not fixed:
                raise
            return self._from_any_topic(Facts(self._group.edges, {}))

    def _comparison_of_topics(self) -> Candidate:
        """Return the candidate of `(ABS(?value_of_a - ?value_of_b) AS ?answer)`.

        Or that of `BIND(IF(?value_of_a > ?value_of_b, a, b) AS ?answer)`.
        """
        values, named = self._subtracted, []
        if self._group.bound:
            (variable, choice), *more = self._group.bound
            ensure(
                not more and variable == self._answer and getattr(choice, "name", "") == "Builtin_IF", "computed value"
            )
            ensure(getattr(choice.arg1, "name", "") == "RelationalExpression", "computed value")
            larger, operator, smaller, _ = _sides(choice.arg1)
            ensure(operator in ("<", ">"), "computed value")
            values = (larger, smaller) if operator == ">" else (smaller, larger)
            named = [choice.arg2, choice.arg3]
        facts = Facts(self._group.edges, {})
        ways = [
            (entity, path[0])
            for value in values
            for entity in facts.entities
            for start in facts.starts(entity)
            if (path := facts.path([start], value))
        ]
        ensure(len(ways) == 2, "comparison of two values")
        (one, steps), (other, same) = ways
        ensure(steps == same and len(facts.distinct) == 2 * len(steps), "comparison of two values")
        if not named:
            topics = (Entity(str(one)), Entity(str(other)))
            return Candidate(RelationPath(topics[0]), "", operation=Operation("difference", steps, topics=topics))
        ensure({one, other} == set(named), "comparison of two values")
        order = _Order("most" if one == named[0] else "least")
        topics = (Entity(str(named[0])), Entity(str(named[1])))
        operation = replace(self._extreme(order, steps, None), topics=topics)
        return Candidate(RelationPath(topics[0]), "", operation=operation)

    def _from_any_topic(self, facts: Facts) -> Candidate:
        connected = _check_tree(facts, self._answer)
        ensure(self._tests.keys() <= connected, "condition of a variable without facts")
        excluded = {each.test for each in self._tests.get(self._answer, ()) if each.negated and not each.steps}
        given = sorted(self._topics, key=lambda topic: Entity(topic) not in excluded)
        entities = {str(entity): entity for entity in facts.entities}
        reason = Untranslatable("no topic")
        for topic in dict.fromkeys([*(each for each in given if each in entities), *entities]):
            for start in facts.starts(entities[topic]):
                try:
                    return self._from(facts, entities[topic], start)
                except Untranslatable as error:
                    reason = error if str(reason) == "no topic" else reason
        raise reason

    def _from(self, facts: Facts, topic: Any, start: tuple[Step, Any]) -> Candidate:
        path = facts.path([start], self._answer)
        if path is None:
            raise Untranslatable("no path to the answer")
        steps, nodes = path
        order, operation = self._order, self._operation
        tests = {node: list(each) for node, each in self._tests.items()}
        for node, value in self._values.items():
            tests.setdefault(node, []).append(Condition(1, (), _constant(value)))
        joins: list[Join] = []
        conditions: list[Condition] = []
        for at, node in enumerate(nodes, start=1):
            conditions += [replace(each, at=at) for each in tests.get(node, ())]
            back = (start[0].reversed(), topic)
            for edge in facts.edges[node]:
                if edge[1] in nodes or (at == 1 and edge == back):
                    continue
                way, passed = _branch(facts, node, edge)
                if order and order.variable in passed:
                    ensure(not any(each in tests for each in passed), "condition of the value of an order")
                    ensure(order.variable == passed[-1], "several conditions on a node beside the path")
                    operation = self._extreme(order, way, None if at == len(nodes) else at)
                    continue
                for steps_beside, value in _chains(way, passed, tests):
                    if isinstance(value, Entity) and value.iri in self._topics and value.iri != str(topic):
                        joins.append(Join(at, RelationPath(value, tuple(s.reversed() for s in reversed(steps_beside)))))
                    else:
                        conditions.append(Condition(at, steps_beside, value))
        # the walk rule keeps the ends of a path apart from its topic, and from those of the paths that it meets
        known = {Entity(str(topic)), *(join.path.topic for join in joins)}
        conditions = [each for each in conditions if each.steps or not each.negated or each.test not in known]
        conditions.sort(key=lambda each: each.negated and not each.steps)
        if order and order.variable == self._answer:
            on_last = any(condition.at == len(nodes) for condition in conditions) or len(nodes) == 1
            way = () if order.kind in ("most", "least") or on_last else steps[-1:]
            operation = self._extreme(order, way, None, steps[-1].relation)
            steps = steps[: len(steps) - len(way)]  # values of several ends are added up though they are equal
        ensure(operation or not order, "order by a node of the path")
        tests_once = tuple(dict.fromkeys(conditions))
        return Candidate(
            RelationPath(Entity(str(topic)), steps), "", joins=tuple(joins), conditions=tests_once, operation=operation
        )

    def _extreme(self, order: _Order, way: tuple[Step, ...], at: int | None, relation: str = "") -> Operation:
        names = {cast.removeprefix(XSD) for cast in order.casts}
        dates = names & {"STR", *_DATES} or (not names & _NUMBERS and self._is_date(relation or way[-1].relation))
        scale = "day" if dates and not order.counted else "number"
        return Operation(order.kind, way, scale, order.counted, order.rank, at=at)  # type: ignore[arg-type]


# ---- expressions ----


def _read(pattern: Any) -> Group:
    group = read_group(pattern)
    ensure(not group.unread, group.unread[0] if group.unread else "")
    return group


def _is_about_language(expression: Any) -> bool:
    names = {getattr(node, "name", "") for node in nodes_in(expression)} - {""}
    return bool(names & _ON_LANGUAGE) and names <= _ON_LANGUAGE | _LOGICAL


def _difference(expression: Any) -> tuple[Any, ...]:
    """Return the two variables of `?a - ?b`, also in ABS(); () if the expression is another one."""
    if getattr(expression, "name", "") == "Builtin_ABS":
        expression = expression.arg
    if getattr(expression, "name", "") != "AdditiveExpression" or list(expression.op) != ["-"]:
        return ()
    variables = (_uncast(expression.expr)[0], _uncast(expression.other[0])[0])
    return variables if all(map(is_variable, variables)) else ()


def _uncast(expression: Any) -> tuple[Any, tuple[str, ...]]:
    """Return an expression without conversions, and the names of the conversions."""
    name = getattr(expression, "name", "")
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
    ensure(expression.op in OPPOSITE, f"filter {expression.op}")
    left, left_casts = _uncast(expression.expr)
    right, right_casts = _uncast(expression.other)
    casts = left_casts + right_casts
    if is_variable(right) and not is_variable(left):
        return right, _MIRRORED[expression.op], left, casts
    ensure(is_variable(left), "comparison of computed values")
    return left, expression.op, right, casts


def _comparison(operator: Any, value: Any, casts: Sequence[str]) -> Comparison:
    """Return a comparison; the first or last day of a year is compared as its year where that is the same."""
    ensure(type(value).__name__ == "Literal", "comparison of computed values")
    text, datatype = str(value), str(value.datatype or "")
    names = {name.removeprefix(XSD) for name in (*casts, datatype)}
    ordered = operator not in ("=", "!=")
    try:
        if "YEAR" in names and re.fullmatch("[0-9]+", text):
            return Comparison(operator, Literal(f"{int(text):04d}", YEAR))
        dated = names & {"STR", "YEAR", *_DATES} or (ordered and "-" in text[1:])
        if dated and (found := _DATE.fullmatch(text)):
            year, month, day, time = found.groups()
            end_of_day = time == "23:59:59" and operator in (">", "<=")
            ensure(not time or _MIDNIGHT.fullmatch(time) or end_of_day, "time of day")
            first = (month or "01", day or "01") == ("01", "01") and operator in ("<", ">=")
            last = (month, day) == ("12", "31") and operator in (">", "<=")
            if first or last or month is None:
                return Comparison(operator, Literal(year, YEAR))
            return Comparison(
                operator, Literal(f"{year}-{month}-{day}", DAY) if day else Literal(f"{year}-{month}", MONTH)
            )
        is_number = datatype in NUMBERS or (ordered and re.fullmatch(NUMBER_TEXT, text))
        return Comparison(operator, Literal(text, XSD + "decimal") if is_number else Literal(text))
    except ValueError as error:
        raise Untranslatable("comparison of other values") from error


def _constant(term: Any) -> Entity | Comparison:
    return Entity(str(term)) if is_entity(term) else Comparison("=", Literal(str(term)))


# ---- the tree of variables ----


def _check_tree(facts: Facts, answer: Any) -> set[Any]:
    """Return the variables; raise `Untranslatable` if they form no tree, or the answer is not in it."""
    variables = {term for term in facts.edges if is_variable(term)}
    ends = [is_variable(subject) + is_variable(value) for subject, _, value in facts.distinct]
    ensure(all(ends), "fact without a variable")
    ensure(answer in variables, "no path to the answer")
    reached = {answer, *(node for node in variables if facts.path(facts.starts(answer), node))}
    ensure(reached == variables, "unconnected parts")
    ensure(ends.count(2) < len(variables), "cycle")
    return variables


def _branch(facts: Facts, node: Any, edge: tuple[Step, Any]) -> tuple[tuple[Step, ...], list[Any]]:
    """Return the steps along a branch on a node, and the terms on the way, which must not fork."""
    step, other = edge
    onward = [each for each in facts.edges[other] if each[1] != node] if is_variable(other) else []
    ensure(len(onward) < 2, "several conditions on a node beside the path")
    steps, passed = _branch(facts, other, onward[0]) if onward else ((), [])
    return (step, *steps), [other, *passed]


def _chains(
    steps: tuple[Step, ...], passed: Sequence[Any], tests: _Tests
) -> Iterator[tuple[tuple[Step, ...], Entity | Comparison | None]]:
    """Yield the steps of a branch with each test of the value at its end; None if any value will do."""
    *inner, end = passed
    found = tests.get(end, ())
    alone = not any(node in tests for node in inner) and not any(each.steps or each.negated for each in found)
    ensure(alone, "several conditions on a node beside the path")
    if not is_variable(end):
        yield steps, _constant(end)
    else:
        yield from ((steps, test) for test in [each.test for each in found] or [None])
