"""The promise of docs/safety.md as a matrix: every command that talks to a peer, by every case.

`cases` says what each misbehaving peer does and which colour and which words it must lead to,
`commands` how each command is started and how long it may take, `cell` runs one cell and
measures it, `matrix` runs all of them, and `page` shows them. `hostile` is a server whose contents
or answers are hostile; `http_twin` serves any stdio program over HTTP as it is.
"""
