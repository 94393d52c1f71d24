"""How a suite is written, short enough for the context of a model. A test loads its example."""

from __future__ import annotations

EXAMPLE = """\
# yaml-language-server: $schema=mcptest://schema/suite
server:
  command: npx
  args: ["-y", "my-server"]
defaults:
  timeout: 10s
tests:
  - name: add gives the sum
    assert:
      tool: add
      args: {a: 2, b: 3}
      expect:
        not_error: true
        contains: ["5"]
  - name: a missing argument is refused in words that a model can use
    assert:
      tool: add
      args: {a: 2}
      expect:
        is_error: true
        contains_any: ["required", "missing"]
  - name: the weather has a temperature
    assert:
      tool: weather
      args: {city: Paris}
      expect:
        checks:
          - target: structured.temperature.value
            matcher: {type: number}
  - name: the greeting can be read
    assert_resources:
      read: demo://greeting
      expect: {not_empty: true}
  - name: the prompt names whom to greet
    assert_prompts:
      get: {name: greet, arguments: {name: Ada}}
      expect: {contains: ["Ada"]}
"""

GUIDE = f"""\
# Writing a suite for mcptest

A suite is YAML: a server, and tests that each call it once and say what must hold of the answer.
Unknown keys, duplicate keys and tests without an expectation are refused, with the place.

```yaml
{EXAMPLE}```

What a test asks, one of: `assert` (a tool), `assert_resources` (`list`, `templates` or `read`),
`assert_prompts` (`list` or `get`), `assert_completion`, `assert_sampling`, `assert_logging`,
`assert_notifications`, `trajectory`.

What `expect` may hold, among others: `not_error`, `is_error`, `not_empty`, `equals`, `contains`,
`contains_any`, `not_contains`, `matches_regex`, `json_path`, `min_results`, `max_results`,
`schema`, `error_code`, `max_duration`, `checks` (rows of `target` and `matcher`).

Before a test: `setup` (calls whose answers can be captured), `{{{{fixture}}}}` (a copy of the
folder given with --fixture), `skip_unless_env`, `tags`, `timeout`.

Good tests name one behaviour each, cover one refusal per tool beside its success, look at
structured content where there is some, and never depend on the order of tests.

Check a suite with the tool validate_suite before it is kept; the JSON Schema is the resource
mcptest://schema/suite.
"""
