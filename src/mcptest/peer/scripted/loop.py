"""The loop that the scripted server runs on is that of the demo; whoever runs it takes it here."""

from __future__ import annotations

from mcptest.peer.demo import loop as of_the_demo

Loop = of_the_demo.Loop
READ = of_the_demo.READ
GONE = of_the_demo.GONE
