"""What is shown of a request and of stderr: once, and without what every request says."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcptest.core.results import Proof, RunReport
from mcptest.report import run_results
from mcptest.report.evidence import BRIEF, proof_lines, without_boilerplate
from mcptest.report.terminal import Style
from tests.support.sample_run import CRASH, SUM

OURS = (
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    '"io.modelcontextprotocol/clientInfo":{"name":"mcptest"},'
    '"io.modelcontextprotocol/clientCapabilities":{}'
)


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        (f'{{"params":{{"a":1,"_meta":{{{OURS}}}}}}}', '{"params":{"a":1,"_meta":{…}}}'),
        (f'{{"_meta":{{"progressToken":1,{OURS}}}}}', '{"_meta":{"progressToken":1,…}}'),
        ('{"_meta":{"progressToken":1}}', '{"_meta":{"progressToken":1}}'),
        *(
            (f'{{"_meta":{{{odd}}}}}', f'{{"_meta":{{{odd}}}}}')
            for odd in (
                OURS.replace("2026-07-28", "1999-01-01"),
                OURS.replace("{}", '{"sampling":{}}'),
                OURS.partition(",")[0],
                OURS.replace('{"name":"mcptest"}', "7"),
            )
        ),
        (f'{{"_meta":{{{OURS[:60]}', f'{{"_meta":{{{OURS[:60]}'),
        ("io.modelcontextprotocol/ is no JSON", "io.modelcontextprotocol/ is no JSON"),
    ],
)
def test_what_every_request_says_of_its_client_is_folded(request_: str, shown: str) -> None:
    assert without_boilerplate(request_) == shown


def test_stderr_that_the_reason_quotes_is_not_shown_again() -> None:
    proof = Proof(request="{}", stderr=("Traceback:", "  ValueError: no"))
    quoting = replace(CRASH, detail="it died\n  stderr: Traceback:\n  ValueError: no", proof=proof)
    assert "stderr" not in dict(proof_lines(quoting, BRIEF))
    assert "stderr" in dict(proof_lines(replace(quoting, detail="it died"), BRIEF))


def test_the_same_stderr_is_shown_with_the_first_failure_only() -> None:
    first = replace(SUM, proof=Proof(request="{}", stderr=("loading the model",)))
    text = run_results.render(RunReport(results=(first, replace(first, name="b"))), Style())
    assert text.count("loading the model") == 1
    assert "stderr:   (same as above)" in text
