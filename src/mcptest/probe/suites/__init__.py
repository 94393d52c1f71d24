"""Running the tests of suites: tests become jobs, jobs become results.

`suite_run` is the entry: it decides what runs when and on which server. `server_session` is a
server with its copy of the fixture, and `attempt` runs one test on it.
"""
