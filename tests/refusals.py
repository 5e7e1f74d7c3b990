"""What holds of every refusal: one line, nothing of what lies behind it, and no question was asked before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from privsyn.errors import InputError
from privsyn.private.noise import ExactGaussian, ExactLaplace


@contextmanager
def refuses(words: str = "", *, spent: bool = False) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an `InputError` whose one line has these words, or fits them, before any noise is drawn.

    With `spent` noise may be drawn before: a file can change while it is read.
    """
    with pytest.MonkeyPatch.context() as patch:
        for noise in () if spent else (ExactGaussian, ExactLaplace):
            patch.setattr(noise, "draw", lambda *_: pytest.fail("a question was asked"))
        with pytest.raises(InputError) as error:
            yield error
    text = str(error.value)
    assert words in text or re.search(words, text), text
    assert "\n" not in text
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None
