"""Values as the command line has them, and bounds of whole numbers and of memory."""

import pytest

import steadyrl
from steadyrl.agents.dqn import DQNSettings
from steadyrl.agents.mean_gini import MeanGiniSettings
from steadyrl.agents.networks import MLP
from steadyrl.base.settings import MAX_WHOLE, read_value
from steadyrl.training.replay_buffer import ReplayBuffer


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(text, True) for text in ("True", "true", "TRUE")],
        *[(text, False) for text in ("False", "false")],
        *[(text, None) for text in ("None", "none", "null")],
        ("3", 3),
        (" -3 ", -3),
        ("10_000", 10_000),
        ("1e4", 1e4),
        ("0.5", 0.5),
        (".5", 0.5),
        ("[1, 2]", [1, 2]),
        ("(1, 2)", [1, 2]),
        ("[True, None, 'a,b']", [True, None, "a,b"]),
        ('{"a": [true]}', {"a": [True]}),
        ("'False'", "False"),
        ('"3"', "3"),
        ("4x4", "4x4"),
        ("inf", "inf"),
        ("S.G", "S.G"),
        ("[S.G", "[S.G"),
        ("", ""),
    ],
)
def test_one_reading_of_values(text, value):
    assert read_value(text) == value
    assert type(read_value(text)) is type(value)


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 5000 + "]" * 5000, "1e999", "9" * 5000])
def test_values_out_of_bounds_are_errors(text):
    with pytest.raises(ValueError, match=r"nested too deeply|too large"):
        read_value(text)


@pytest.mark.parametrize("text", ["1e4", "10_000", "10000", "10000.0"])
def test_whole_numbers_may_be_written_as_others_write_them(text):
    assert DQNSettings.of_text({"exploration_steps": text}).exploration_steps == 10_000
    assert MeanGiniSettings.of_text({"hidden": f"{text},8"}).hidden == (10_000, 8)


@pytest.mark.parametrize("text", ["64,32", "(64,32)", "[64, 32]", " 64, 32,"])
def test_lists_with_and_without_brackets(text):
    assert MeanGiniSettings.of_text({"hidden": text}).hidden == (64, 32)


@pytest.mark.parametrize("text", ["", " ", ",", "64,,64", "64,a", "64,2.5", "true", "[[64]]", "[" * 100_000])
def test_no_hidden_layers_only_if_that_is_written(text):
    assert MeanGiniSettings.of_text({"hidden": "[]"}).hidden == MeanGiniSettings.of_text({"hidden": "()"}).hidden == ()
    with pytest.raises(ValueError, match=r"whole numbers are needed, such as hidden=64,64; or hidden=\[\] for none\."):
        MeanGiniSettings.of_text({"hidden": text})


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"hidden": "9" * 30}, f"hidden={'9' * 30}: it must be at most {MAX_WHOLE}"),
        ({"gradient_steps": "1e30"}, f"it must be at most {MAX_WHOLE}. Updates in such a round."),
        ({"buffer_size": str(2**31)}, f"buffer_size={2**31}: it must be at most {MAX_WHOLE}"),
        ({"gamma": "1e999"}, "gamma=inf: it must be finite"),
        ({"gamma": "9" * 400}, "gamma=inf: it must be finite"),
        ({"gamma": "nan"}, "gamma=nan: it must be finite"),
        ({"double": "no"}, "double=no: true or false is needed."),
        ({"double": "1"}, "double=1: true or false is needed."),
        ({"train_freq": "inf"}, "train_freq=inf: a whole number is needed."),
        ({"train_freq": ""}, "train_freq=: a whole number is needed."),
    ],
)
def test_texts_out_of_bounds(pairs, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        DQNSettings.of_text(pairs)
    assert message in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("name", "value"),
    [("train_freq", 10**5000), ("train_freq", -(10**30)), ("gamma", 10**400), ("hidden", [10**400])],
    ids=["many digits", "negative", "float", "list"],
)
def test_numbers_out_of_bounds_in_python(name, value):
    with pytest.raises(ValueError, match=rf"{name}=.*: it must be "):
        DQNSettings.of({name: value})


def test_rules_can_be_asked_for_by_text():
    assert DQNSettings.of_text({"gradient_steps": "auto"}) == DQNSettings()


@pytest.mark.filterwarnings("ignore:the setting time_out_ends is now called:DeprecationWarning")
def test_text_is_not_negated():
    with pytest.raises(ValueError, match="bootstrap_on_truncation=no: true or false is needed"):
        DQNSettings.of({"time_out_ends": "no"})


def test_networks_that_do_not_fit_into_memory():
    message = (
        r"hidden=\(100000, 100000\): this needs 3\d\d\.\d GB of memory, and this machine has .* GB\. Lower hidden\."
    )
    with pytest.raises(ValueError, match=message):
        steadyrl.MeanGini("CartPole-v1", hidden=(100_000, 100_000))
    MLP((8, 4096, 4096, 4))


def test_batches_that_do_not_fit_into_memory():
    buffer = ReplayBuffer(4, 10)
    buffer.add([0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"gradient_steps=2147483647: this needs .* GB of memory"):
        buffer.sample(None, MAX_WHOLE, 1000)
    with pytest.raises(ValueError, match=r"buffer_size=2147483647: this needs .* GB\. Lower buffer_size\."):
        steadyrl.DQN("CartPole-v1", buffer_size=MAX_WHOLE)
