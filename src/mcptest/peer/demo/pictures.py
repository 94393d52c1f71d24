"""The one picture of the demo: a red square of 8 by 8 pixels."""

from __future__ import annotations

PNG_BASE64 = (
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAIAQMAAAD+wSzIAAAAA1BMVEXQICCEGQyAAAAAC0lEQVR42mNgQAUAABAA"
    "AaoZ+IIAAAAASUVORK5CYII="
)
PNG_BYTES = 83
