"""Texts from files that anybody may have written."""

import pytest

from steadyrl.base.parsing import parse_json, parse_toml

DEEP = 100_000


@pytest.mark.parametrize("text", ["[" * DEEP, '{"a":' * DEEP, "nul", "9" * 5000, b"\xff\xfe\x00"])
def test_malformed_json_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 (any)
        parse_json(text)


@pytest.mark.parametrize("text", ["a = " + "[" * DEEP, "a = " + "{b=" * DEEP, "a = ", "a = " + "9" * 5000])
def test_malformed_toml_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 (any)
        parse_toml(text)


def test_well_formed_texts():
    assert parse_json('{"a": [1, null]}') == {"a": [1, None]}
    assert parse_toml("a = [1, 2]") == {"a": [1, 2]}
