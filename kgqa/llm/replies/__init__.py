"""Forms of replies: readers that extract a value from the reply of a language model, and schemas that follow from it.

Readers accept any text and never raise. An ambiguous reply has no value, so an unreadable reply never counts as "yes".

A prompt carries the form of its reply. A JSON reply is a frozen dataclass beside the code that sends the prompt:

    @dataclass(frozen=True, kw_only=True)
    class Reflection:
        verdict: Literal["YES", "NO"]
        missing: Prose = ""
        questions: Annotated[tuple[str, ...], Form(keys=("sub questions",))] = ()

    prompt = prompts.prompt("tog3/reflect", "decide", reply_of(Reflection), question=..., answer=...)
    (reflection,) = resources.ask([prompt], trace)  # a Reflection, or None for an unusable reply

The order of the fields is that of the schema. A reply without a field that has no default is unusable; all keys are in
the schema as required unless `Form(optional=True)`. `reply_of(Reflection).then(check)` maps the value; a ValueError of
`check` is the problem that the model is told when it is asked again. A form that is not JSON is
`Reply(read, choices=...)` with a reader of a number, letter or list (`choices`, `indices`, `scores`) or of calls.
"""
