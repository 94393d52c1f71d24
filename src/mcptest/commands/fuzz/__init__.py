"""`mcptest fuzz`: almost valid inputs for each tool, and what becomes of the server.

`inputs` makes them from the schema and a seed, `fuzzer` sends them, `fuzz_verdict` judges each
answer, and what fails is made small and saved as a suite (`probe/shrink`,
`probe/counterexamples`).
"""
