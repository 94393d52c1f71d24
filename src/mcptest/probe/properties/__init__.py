"""Property tests of the protocol: examples are drawn, played on a server, judged and shrunk.

An example is a sequence of steps (`steps`). `message_strategies` draws examples with Hypothesis,
which is imported here and by whoever runs these, and by nothing else. `example_player` plays one
on a server that many examples share, `example_judge` holds the rules against it, and what fails is
tried again on a fresh server and made small there.
"""
