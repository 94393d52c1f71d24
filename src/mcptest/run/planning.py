"""Which job runs which test: by what the test needs, and what was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from mcptest.model.errors import UsageError
from mcptest.run.choosing import is_remote
from mcptest.run.jobs import FreshJob, SerialJob, SkipJob, TraceJob
from mcptest.run.pool import Job
from mcptest.run.settings import Numbered, Settings, server_key, skip_reason
from mcptest.run.sharing import SharedJob
from mcptest.suite.model import SamplingBlock, ServerSpec, TrajectoryBlock


def plan(
    items: Sequence[Numbered],
    settings: Settings,
    *,
    shared: bool,
    in_flight: int,
    serial_urls: bool,
) -> list[Job]:
    """Which job runs which test. `shared` is what the command line says for all of them."""
    jobs: list[Job] = []
    groups: dict[object, SharedJob | SerialJob | TraceJob | SkipJob] = {}
    for item in items:
        kind = _kind(item, settings, shared=shared, serial_urls=serial_urls)
        if kind == "fresh":
            jobs.append(FreshJob(item, settings))
            continue
        key = (kind, group_key(item, settings)) if kind in {"shared", "url"} else kind
        group = groups.get(key)
        if group is None:
            if kind == "shared":
                group = SharedJob([], settings, in_flight)
            elif kind == "url":
                group = SerialJob([], settings)
            else:
                group = TraceJob([], settings) if kind == "trace" else SkipJob([], settings)
            groups[key] = group
            jobs.append(group)
        group.items.append(item)
    return jobs


def _kind(item: Numbered, settings: Settings, *, shared: bool, serial_urls: bool) -> str:
    test = item.test
    if skip_reason(test) is not None:
        return "skip"
    if isinstance(test.block, TrajectoryBlock):
        return "trace"
    if test.isolation == "shared" or (shared and test.isolation is None):
        return "shared"
    return "url" if serial_urls and _is_remote(item, settings) else "fresh"


def _is_remote(item: Numbered, settings: Settings) -> bool:
    try:
        return is_remote(item.test.server or ServerSpec(), item.choice or settings.choice)
    except UsageError:
        return False  # its test will say what is wrong


def group_key(item: Numbered, settings: Settings) -> object:
    """Tests share a server when it is started in the same way and for the same trial."""
    test = item.test
    mock = repr(test.block.mock) if isinstance(test.block, SamplingBlock) else ""
    choice = item.choice or settings.choice
    return server_key(test.server or ServerSpec(), choice), item.language, item.trial, mock
