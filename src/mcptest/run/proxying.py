"""Recording a session that somebody else drives."""

from __future__ import annotations

import sys
from pathlib import Path

from mcptest.model.errors import ExitCode, UsageError
from mcptest.run.recording import Form, recorder_for, settle_exchanges
from mcptest.transport.proxy import StdioProxy
from mcptest.transport.target import Target


def record_proxied(target: Target, path: Path, form: Form) -> int:
    """Be the server's stand-in on stdio until it is gone. Nothing of ours goes to stdout."""
    if target.way != "stdio":
        raise UsageError("--proxy sits on stdio: the server must be a command, not a URL")
    recorder = recorder_for(target, path, form)
    try:
        with recorder:
            recorder.begin(label=target.label, transport="stdio", peer=target.peer)
            proxy = StdioProxy(
                target.command,
                sink=recorder,
                env=target.env,
                cwd=target.cwd,
                flush=recorder.flush,
            )
            code = proxy.run()
    finally:
        if form == "exchanges":
            settle_exchanges(recorder, path)
    if recorder.error is not None:
        place = recorder.written_to
        sys.stderr.write(f"mcptest: {place} is not complete: {recorder.error.strerror}\n")
        return code or ExitCode.FAILED
    return code
