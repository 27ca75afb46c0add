"""Whatever is given to a setting of any agent: settings, or a ValueError in one line."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyrl.agents import AGENTS
from steadyrl.agents.settings import EnvKind
from steadyrl.base.settings import Rule, types_of

EVERY = sorted({cls for kind in AGENTS.values() for cls in kind.settings_classes()}, key=lambda cls: cls.__name__)
numbers = st.integers() | st.integers(-(10**400), 10**400) | st.floats() | st.booleans() | st.complex_numbers()
arrays = st.sampled_from([np.array([1, 2]), np.array(3.0), np.float32(2), np.int8(3), np.bool_(True), np.longdouble(1)])
plain = (
    st.none() | numbers | st.text() | st.binary() | arrays | st.sampled_from(["auto", "mlp", "table", "sgd", object])
)
values = st.recursive(
    plain, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner)
)
texts = st.text() | st.from_regex(r"[-+]?[0-9_.]{1,5}(e[0-9]{1,3})?", fullmatch=True) | values.map(str)
pytestmark = pytest.mark.filterwarnings("ignore:the setting .* is now called:DeprecationWarning")


def is_settings_or_error(make, cls):
    """True for both; anything else is raised."""
    try:
        made = make()
        resolved = [made.resolve(EnvKind(tabular=tabular, finite=tabular)) for tabular in (True, False)]
    except ValueError as error:
        lines = str(error).splitlines()
        assert len(lines) == 1, lines
        return True
    for one in resolved:
        assert type(one) is cls
        for field in dataclasses.fields(cls):
            assert type(getattr(one, field.name)) in (bool, int, float, str, tuple, type(None))
            assert not isinstance(getattr(one, field.name), Rule)
        assert cls.of(dataclasses.asdict(one)) == one
    return True


@pytest.mark.parametrize("cls", EVERY, ids=lambda cls: cls.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_any_value(cls, data):
    given = data.draw(st.dictionaries(st.sampled_from(sorted(types_of((cls,)))), values, min_size=1, max_size=3))
    assert is_settings_or_error(lambda: cls.of(given), cls)


@pytest.mark.parametrize("cls", EVERY, ids=lambda cls: cls.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_any_text(cls, data):
    given = data.draw(st.dictionaries(st.sampled_from(sorted(types_of((cls,)))), texts, min_size=1, max_size=3))
    assert is_settings_or_error(lambda: cls.of_text(given), cls)


@pytest.mark.parametrize("cls", EVERY, ids=lambda cls: cls.__name__)
def test_extreme_values_of_every_setting(cls):
    for name in types_of((cls,)):
        for value in (10**400, -(10**400), 2**31, 2**63, 1e308, -1e308, 5e-324, float("nan"), "", "auto", [], None):
            assert is_settings_or_error(lambda name=name, value=value: cls.of({name: value}), cls)
            text = repr(value) if not isinstance(value, str) else value
            assert is_settings_or_error(lambda name=name, text=text: cls.of_text({name: text}), cls)
