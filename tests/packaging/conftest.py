"""One build and one installation for all tests here that ask for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.installing import Installed, built, installed


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="package")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installed(wheel, tmp_path_factory.mktemp("installed"))
