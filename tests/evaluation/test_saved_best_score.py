"""The score in the file of the best agent, which anybody may have altered."""

import pytest

from steadyrl import Reinforce
from steadyrl.evaluation.callbacks import EvaluateEvery
from steadyrl.training import checkpoint


@pytest.mark.parametrize("score", ["high", None, [1.0], True, float("nan"), 10**400])
def test_a_score_that_is_no_number_is_one_error(tmp_path, score):
    agent, path = Reinforce("steadyrl/GuardedMaze-v0"), tmp_path / "best.steady"
    callback = EvaluateEvery(1, episodes=2, save_best=path)
    note = {"scoring": callback._scoring()}
    checkpoint.write(agent, path, note={**note, "score": 2.5})
    assert callback._saved_score(agent) == 2.5
    checkpoint.write(agent, path, note={**note, "score": score})
    with pytest.raises(ValueError, match=r"best\.steady: its score is .* not a number\. Remove the file\."):
        callback._saved_score(agent)
