"""A gold query translated into one candidate: a path, joins, conditions and an operation.

The variables of the query must form a tree. The path leads from a topic through the tree to the variable that the query
asks for; what hangs beside the path becomes joins (ends in another topic) and conditions. Not translated: the filter
that two variables are unequal (the walk rule of the graph decides), filters on the language of names, and whether two
conditions on one variable must hold for the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from typing import Literal as OneOf

from kgqa.model import Candidate, Entity, Join, Literal, RelationPath, Step
from kgqa.model.conditions import MAX_RANK, XSD, Comparison, Condition, Operation, OperationKind
from kgqa.training.gold_filters import DATES, OPPOSITE, comparison, is_about_language, sides, uncast
from kgqa.training.gold_groups import Group, Untranslatable, disjuncts, is_variable, parsed, plain, read_group
from kgqa.training.gold_trees import Tree, chains

_KINDS: Mapping[str, OperationKind] = {
    "Aggregate_Sum": "sum", "Aggregate_Avg": "average", "Aggregate_Max": "most", "Aggregate_Min": "least",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Translation:
    """The candidate of a gold query, without wording, or the reason why there is none."""

    candidate: Candidate | None
    reason: str = ""


def gold_candidate(
    sparql: str, topics: Sequence[str] = (), *, is_date: Callable[[str], bool] = lambda relation: False
) -> Translation:
    """Translate a gold query into a candidate.

    Args:
        sparql: the gold query.
        topics: IRIs of the topics; other entities of the query are used if they lead to no translation.
        is_date: whether the values of a relation are dates; decides how values are ordered that are not cast.
    """
    try:
        return Translation(_Translator(parsed(sparql), topics, is_date).candidate())
    except Untranslatable as error:
        return Translation(None, str(error))


@dataclass(frozen=True, slots=True)
class _Order:
    """What the query orders its rows by, or adds up."""

    kind: OperationKind
    variable: Any
    is_number: bool = False
    is_date: bool = False
    counted: bool = False
    rank: int = 1


class _Translator:
    """Translates one query."""

    def __init__(self, query: Any, topics: Sequence[str], is_date: Callable[[str], bool]) -> None:
        self._query = query
        self._topics = topics
        self._is_date = is_date
        self._group = group = read_group(query.where)
        self._comparisons: dict[Any, list[Comparison]] = {}
        self._unequal: dict[Any, list[str]] = {}
        self._negated: dict[Any, list[tuple[tuple[Step, ...], Entity | Comparison | None]]] = {}
        self._values: dict[Any, str] = {}
        self._count = False
        self._order: _Order | None = None
        self._subtracted: tuple[Any, Any] | None = None
        self._answer = self._read_answer()
        self._read_order()
        for expression in group.filters:  # grows by the filters of groups that a filter makes required
            self._read_filter(expression)
        for variable, values in group.values.items():
            self._fix(variable, values)
        for each in group.negated:
            self._negate(each)

    # ---- what is asked for ----

    def _read_answer(self) -> Any:
        query = self._query
        if query.name == "AskQuery":
            return self._end_of_ask()
        listed = query.projection or ()
        if not listed:
            raise Untranslatable("SELECT *")
        first = listed[0]
        if "expr" not in first:
            return first["var"]
        value = plain(first.expr)
        if values := _difference(value):
            self._subtracted = values
            return values[0]
        name = getattr(value, "name", "")
        asked = plain(value.vars) if name.startswith("Aggregate_") and is_variable(plain(value.vars)) else value
        if name == "Aggregate_Count":
            self._count = True
        elif name in _KINDS:
            self._order = _Order(_KINDS[name], asked, is_number=name in ("Aggregate_Sum", "Aggregate_Avg"))
        elif name != "Aggregate_Sample" and not is_variable(value):
            raise Untranslatable("computed value")
        if not is_variable(asked):
            raise Untranslatable("computed value")
        return asked

    def _end_of_ask(self) -> Any:
        """Return a variable at the end of the pattern; the object of the last fact if the pattern has no variable."""
        from rdflib import URIRef, Variable

        variables = [value for _, _, value in self._group.edges if is_variable(value)]
        if variables:
            return variables[-1]
        if not self._group.edges:
            raise Untranslatable("no facts")
        subject, step, value = self._group.edges[-1]
        self._group.edges[-1] = (subject, step, end := Variable("end"))
        if isinstance(value, URIRef):
            self._values[end] = str(value)
        else:
            self._comparisons[end] = [Comparison("=", Literal(str(value)))]
        return end

    def _read_order(self) -> None:
        query = self._query
        if "having" in query:
            raise Untranslatable("HAVING")
        if "valuesClause" in query:
            raise Untranslatable("VALUES after the pattern")
        aggregated = self._count or self._order is not None
        if aggregated and "groupby" in query:
            raise Untranslatable("a value per group")
        if "limitoffset" not in query:
            return
        if aggregated:
            raise Untranslatable("order of a computed value")
        limits = query["limitoffset"]
        skipped = int(limits["offset"]) if "offset" in limits else 0
        keys = query["orderby"].condition if "orderby" in query else []
        if not keys:
            raise Untranslatable("LIMIT without order")
        if "limit" not in limits or int(limits["limit"]) != 1:
            raise Untranslatable("several of an order")
        if skipped >= MAX_RANK:
            raise Untranslatable("too far down an order")
        if len(keys) > 1:
            raise Untranslatable("order by several values")
        key = plain(keys[0]["expr"])
        kind: OperationKind = "most" if "order" in keys[0] and keys[0]["order"] == "DESC" else "least"
        counted = getattr(key, "name", "") == "Aggregate_Count"
        if counted:
            key = plain(key.vars)
        variable, casts = uncast(key)
        for listed in query.projection:
            if "expr" in listed and listed["evar"] == variable:
                value = plain(listed["expr"])
                counted = getattr(value, "name", "") == "Aggregate_Count"
                variable = plain(value["vars"]) if counted else None
        if not is_variable(variable):
            raise Untranslatable("order by a computed value")
        is_number = any(cast.removeprefix(XSD) in ("double", "decimal", "integer", "float") for cast in casts)
        is_date = any(cast == "STR" or cast.removeprefix(XSD) in DATES for cast in casts)
        self._order = _Order(kind, variable, is_number, is_date, counted, skipped + 1)

    # ---- filters ----

    def _read_filter(self, expression: Any) -> None:
        name = getattr(expression, "name", "")
        if is_about_language(expression) or name in ("Builtin_isIRI", "Builtin_isURI"):
            return
        if name == "RelationalExpression":
            self._compare(expression)
        elif name in ("Builtin_NOTEXISTS", "Builtin_EXISTS"):
            group = read_group(expression.graph)
            if name == "Builtin_NOTEXISTS":
                self._negate(group)
            else:
                self._group.add(group)
        elif name == "Builtin_BOUND":
            self._group.add(self._optional_with(expression.arg))
        elif name == "UnaryNot" and getattr(plain(expression.expr), "name", "") == "Builtin_BOUND":
            self._negate(self._optional_with(plain(expression.expr).arg))
        elif name == "ConditionalOrExpression":
            self._read_alternatives(expression)
        else:
            raise Untranslatable(f"filter {name.removeprefix('Builtin_') or 'value'}")

    def _read_alternatives(self, expression: Any) -> None:
        """Read that a value is absent or fulfils a comparison: there is no value that fulfils the opposite."""
        first, *others = disjuncts(expression)
        if len(others) != 1:
            raise Untranslatable("alternatives")
        names = {getattr(each, "name", "") for each in (first, *others)}
        if names == {"Builtin_NOTEXISTS", "Builtin_EXISTS"}:
            absent, present = sorted((first, *others), key=lambda each: each.name, reverse=True)
            there, missing = read_group(present.graph), read_group(absent.graph)
            restricted = missing.filters or missing.values or missing.negated or missing.bound
            if restricted or [step for _, step, _ in there.edges] != [step for _, step, _ in missing.edges]:
                raise Untranslatable("alternatives")
        elif names == {"UnaryNot", "RelationalExpression"}:
            present = next(each for each in (first, *others) if each.name == "RelationalExpression")
            there = replace(self._optional_with(sides(present)[0]), filters=[present])
        else:
            raise Untranslatable("alternatives")
        if len(there.filters) != 1 or getattr(there.filters[0], "name", "") != "RelationalExpression":
            raise Untranslatable("alternatives")
        self._negate(there, opposite=True)

    def _optional_with(self, variable: Any) -> Group:
        for group in self._group.optional:
            if variable in group.variables:
                return group
        raise Untranslatable("alternatives")

    def _compare(self, expression: Any) -> None:
        if expression.op == "IN" and len(expression.other) == 1:
            self._fix(plain(expression.expr), [plain(each) for each in expression.other])
            return
        if expression.op not in OPPOSITE:
            raise Untranslatable(f"filter {expression.op}")
        variable, _, operator, value, _ = found = sides(expression)
        if type(value).__name__ == "URIRef" and is_variable(variable) and operator in ("=", "!="):
            if operator == "=":
                self._fix(variable, [value])
            else:
                self._unequal.setdefault(variable, []).append(str(value))
        elif is_variable(variable) and is_variable(value):
            if operator != "!=":
                raise Untranslatable("comparison of two values")
        else:
            self._comparisons.setdefault(variable, []).append(comparison(*found))
            self._require(variable)

    def _require(self, variable: Any) -> None:
        """Make the optional group with a compared variable a required one."""
        if variable not in self._group.variables:
            for group in self._group.optional:
                if variable in group.variables:
                    self._group.add(group)
                    return

    def _fix(self, variable: Any, values: Sequence[Any]) -> None:
        if len(values) != 1 or type(values[0]).__name__ != "URIRef":
            raise Untranslatable("list of values")
        if self._values.get(variable, str(values[0])) != str(values[0]):
            raise Untranslatable("several values of a variable")
        self._values[variable] = str(values[0])

    def _negate(self, group: Group, *, opposite: bool = False) -> None:
        """Add that a chain from a variable of the query has no match."""
        roots = [variable for variable in group.variables if variable in self._group.variables]
        if len(roots) != 1 or group.optional or group.negated or group.values or group.bound:
            raise Untranslatable("comparison of two values")
        comparisons: dict[Any, list[Comparison]] = {}
        for each in group.filters:
            if getattr(each, "name", "") != "RelationalExpression" or each.op not in OPPOSITE:
                raise Untranslatable("alternatives")
            compared = sides(each)
            if compared[0] not in group.variables - set(roots) or is_variable(compared[3]):
                raise Untranslatable("comparison of two values")
            comparisons.setdefault(compared[0], []).append(comparison(*compared, opposite=opposite))
        tree = Tree(group.edges, {})
        tree.check(roots[0])
        found = [chain for branch in tree.branches(roots[0]) for chain in chains(branch, comparisons, {}, ())]
        if len(found) != 1:
            raise Untranslatable("absence of several facts")
        self._negated.setdefault(roots[0], []).append(found[0])

    # ---- the candidate ----

    def candidate(self) -> Candidate:
        """Return the candidate with the first topic that gives one.

        A variable that must be a certain entity is replaced by this entity; if there is no candidate then, it becomes
        a condition.
        """
        between_topics = self._group.bound or self._subtracted
        if between_topics and (self._comparisons or self._unequal or self._negated or self._values):
            raise Untranslatable("condition of compared topics")
        if between_topics and (self._count or self._order):
            raise Untranslatable("order of a computed value")
        if self._group.bound:
            return self._compared_topics()
        if self._subtracted:
            return self._difference_of_topics(*self._subtracted)
        fixed = {variable: iri for variable, iri in self._values.items() if variable != self._answer}
        try:
            return self._in(Tree(self._group.edges, fixed))
        except Untranslatable:
            if not fixed:
                raise
            return self._in(Tree(self._group.edges, {}))

    def _compared_topics(self) -> Candidate:
        """Return the candidate of `BIND(IF(?value_of_a > ?value_of_b, a, b) AS ?answer)`."""
        (variable, expression), *more = self._group.bound
        if more or variable != self._answer or getattr(expression, "name", "") != "Builtin_IF":
            raise Untranslatable("computed value")
        compared, first, second = (plain(each) for each in (expression.arg1, expression.arg2, expression.arg3))
        if getattr(compared, "name", "") != "RelationalExpression" or compared.op not in ("<", ">"):
            raise Untranslatable("computed value")
        larger, _, operator, smaller, _ = sides(compared)
        if operator == "<":
            larger, smaller = smaller, larger
        tree = Tree(self._group.edges, {})
        starts = [*tree.starts(str(first)), *tree.starts(str(second))]
        if len(starts) != 2:
            raise Untranslatable("comparison of two values")
        mirrored = starts[0][1] in tree.connected(smaller)
        goals = (smaller, larger) if mirrored else (larger, smaller)
        steps, others = (tree.path(start, goal)[0] for start, goal in zip(starts, goals))
        if steps != others or tree.size != 2 * len(steps):
            raise Untranslatable("comparison of two values")
        order = _Order("least" if mirrored else "most", None)
        operation = replace(self._extreme(order, steps, None), topics=(Entity(str(first)), Entity(str(second))))
        return Candidate(RelationPath(Entity(str(first))), "", operation=operation)

    def _difference_of_topics(self, first: Any, second: Any) -> Candidate:
        """Return the candidate of `(ABS(?value_of_a - ?value_of_b) AS ?answer)`."""
        tree = Tree(self._group.edges, {})
        ways: list[tuple[str, tuple[Step, ...]]] = []
        for value in (first, second):
            near = tree.connected(value)
            starts = ((entity, start) for entity in tree.entities for start in tree.starts(entity))
            ways += [(entity, tree.path(start, value)[0]) for entity, start in starts if start[1] in near]
        if len(ways) != 2 or ways[0][1] != ways[1][1] or tree.size != 2 * len(ways[0][1]):
            raise Untranslatable("comparison of two values")
        topics = tuple(Entity(iri) for iri, _ in ways)
        return Candidate(RelationPath(topics[0]), "", operation=Operation("difference", ways[0][1], topics=topics))

    def _in(self, tree: Tree) -> Candidate:
        tree.check(self._answer)
        if not {*self._comparisons, *self._negated} <= tree.connected(self._answer):
            raise Untranslatable("condition of a variable without facts")
        excluded = self._unequal.get(self._answer, [])
        given = [topic for topic in self._topics if topic in excluded] + list(self._topics)
        reason: Untranslatable | None = None
        for topic in dict.fromkeys([*given, *tree.entities]):
            for start in tree.starts(topic):
                try:
                    return self._from(tree, topic, start)
                except Untranslatable as error:
                    reason = reason or error
        raise reason or Untranslatable("no topic")

    def _from(self, tree: Tree, topic: str, start: tuple[Step, Any]) -> Candidate:
        steps, nodes = tree.path(start, self._answer)
        order, operation = self._order, None
        back = (start[0].reversed(), tree.entity(topic))
        joins: list[Join] = []
        conditions: list[Condition] = []
        for at, node in enumerate(nodes, start=1):
            conditions += [Condition(at, (), test) for test in self._comparisons.get(node, ())]
            conditions += [Condition(at, way, test, negated=True) for way, test in self._negated.get(node, ())]
            if node in self._values:
                conditions.append(Condition(at, (), Entity(self._values[node])))
            beside = [each for each in tree.branches(node) if each.node not in nodes and (at > 1 or each.edge != back)]
            for branch in beside:
                if order and order.variable in branch:
                    if any(each in branch for each in (*self._comparisons, *self._values, *self._negated)):
                        raise Untranslatable("condition of the value of an order")
                    operation = self._extreme(order, branch.way_to(order.variable), None if at == len(nodes) else at)
                    continue
                for way, test in chains(branch, self._comparisons, self._values, self._negated):
                    if isinstance(test, Entity) and test.iri in self._topics and test.iri != topic:
                        joins.append(Join(at, RelationPath(test, tuple(step.reversed() for step in reversed(way)))))
                    else:
                        conditions.append(Condition(at, way, test))
        known = {topic, *(join.path.topic.iri for join in joins)}
        for node, others in self._unequal.items():
            if node not in nodes:
                raise Untranslatable("inequality beside the path")
            conditions += [
                Condition(nodes.index(node) + 1, (), Entity(other), negated=True)
                for other in others
                if other not in known
            ]
        if self._query.name == "AskQuery":
            operation = Operation("exists")
        elif self._count:
            operation = Operation("count")
        elif order and order.variable == self._answer:
            on_last = any(condition.at == len(nodes) for condition in conditions) or len(nodes) == 1
            way = () if order.kind in ("most", "least") or on_last else steps[-1:]
            operation = self._extreme(order, way, None, steps[-1].relation)
            steps = steps[: len(steps) - len(way)]  # values of several ends are added up though they are equal
        elif order and operation is None:
            raise Untranslatable("order by a node of the path")
        path = RelationPath(Entity(topic), steps)
        tests = tuple(dict.fromkeys(conditions))
        return Candidate(path, "", joins=tuple(joins), conditions=tests, operation=operation)

    def _extreme(self, order: _Order, way: tuple[Step, ...], at: int | None, relation: str = "") -> Operation:
        dates = order.is_date or (not order.is_number and self._is_date(relation or way[-1].relation))
        scale: OneOf["number", "day"] = "day" if dates and not order.counted else "number"
        return Operation(order.kind, way, scale, order.counted, order.rank, at=at)


def _difference(value: Any) -> tuple[Any, Any] | None:
    """Return the two variables of `?a - ?b`, also in ABS(); None if the expression is another one."""
    if getattr(value, "name", "") == "Builtin_ABS":
        value = plain(value.arg)
    if getattr(value, "name", "") != "AdditiveExpression" or list(value.op) != ["-"]:
        return None
    first, second = uncast(value.expr)[0], uncast(value.other[0])[0]
    return (first, second) if is_variable(first) and is_variable(second) else None
