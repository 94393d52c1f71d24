"""The promise of docs/safety.md as a matrix: every command that talks to a peer × every case.

`cases` says what each misbehaving peer does and which colour and which words it must lead to,
`commands` how each command is started and how long it may take, `driving_cells` runs one cell and
measures it, and `matrix` runs all of them and writes the page. `hostile` is a server whose contents
or answers are hostile; `http_twin` serves any stdio program over HTTP as it is.
"""
