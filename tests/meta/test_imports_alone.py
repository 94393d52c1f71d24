"""Every module imports on its own, in a fresh interpreter, with warnings as errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.meta.source_tree import modules

PACKAGES = sorted({module.layer for module in modules()})

# Each module is imported with none of ours loaded; other libraries stay, which saves the time, and
# so does the compiled code of ours, which is run anew.
IMPORT_EACH = """
import gc, importlib, importlib.machinery, sys
gc.disable()
loader = importlib.machinery.SourceFileLoader
load_code, codes = loader.get_code, {}
def get_code(self, name):
    if name not in codes:
        codes[name] = load_code(self, name)
    return codes[name]
loader.get_code = get_code
failed = []
for name in sys.argv[1:]:
    for loaded in [each for each in sys.modules if each.split(".")[0] == "mcptest"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed.append(f"{name}: {type(error).__name__}: {error}")
print("\\n".join(failed))
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_each_module_of_a_package_imports_alone(package: str) -> None:
    names = [module.name for module in modules() if module.layer == package]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EACH, *names],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_module_that_fails_would_be_told() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EACH, "mcptest.no_such_module"],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "mcptest.no_such_module: ModuleNotFoundError" in done.stdout
