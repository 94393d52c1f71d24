"""JSON Schema: validation, and values that fit a schema or just miss it.

What a server's schema can cost is counted first (`cost`), so no schema can hang us. `generator`
makes every value that fits; who decides where a schema leaves room is a value of its own
(`choices`): nobody for the plainest input, a seed for `fuzz`, Hypothesis for `property`
(`hypothesis_strategies`). `tool_inputs` has inputs that are plausible or wrong in one named way.
`message_shapes` knows the shape of every message of every revision. All pure.
"""
