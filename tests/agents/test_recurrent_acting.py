"""Hidden states while episodes are played, by the collector, in evaluation and in a user's own loop."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from memory_envs import Noisy

import steadyrl
from steadyrl.base.seeding import EvaluationStream, evaluation_stream_seed
from steadyrl.evaluation.play import play_policy
from steadyrl.rollouts.acting import Actor, Blocks
from steadyrl.rollouts.collector import Limits, collect
from steadyrl.rollouts.simulators.gymnasium import GymnasiumSimulator

SEEDS, SIZE = list(range(9)), 5


def agent_for(kind):
    """An agent whose policy is random numbers, so that its actions depend on all that it has seen."""
    agent = steadyrl.Reinforce(partial(Noisy, kind), network="gru", hidden=(6, SIZE), squash_mean=False, seed=3)
    rng = np.random.default_rng(5)
    theta = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape), jnp.float32), agent.learner.theta)
    agent.learner = agent.learner._replace(theta=theta)
    return agent


def played(agent, kind, at_once, deterministic=False, actor=None):
    """An episode from each of the seeds, so many at a time."""
    simulator = GymnasiumSimulator(Noisy(kind), partial(Noisy, kind), at_once)
    return collect(simulator, actor or agent.actor(), SEEDS, Limits("Noisy", 100), deterministic)


@pytest.mark.parametrize("at_once", [1, 4, 9])
def test_means_at_playing_time_are_those_of_the_update(at_once):
    """An action without noise is the mean itself: episodes of several lengths, several of them in each slot."""
    agent = agent_for("number")
    episodes = played(agent, "number", at_once, deterministic=True)
    assert set(episodes.mask.sum(axis=1)) == {2, 3, 4, 5, 6}
    policy, theta = agent.algorithm.policy, agent.learner.theta
    means = policy.mlp(theta["mean"], episodes.observations)
    where = episodes.mask > 0
    np.testing.assert_allclose(episodes.actions[where], np.asarray(means)[where], rtol=1e-4, atol=1e-5)
    first = len(SEEDS) - 2  # Observations with which episodes start are -1 or 1.
    assert np.unique(episodes.actions[where].round(4)).size == where.sum() - first, "they depend on everything"


@pytest.mark.parametrize("kind", ["choice", "choices"])
def test_log_probs_at_playing_time_are_those_of_the_update(kind, monkeypatch):
    agent, outputs = agent_for(kind), []
    policy, theta = agent.algorithm.policy, agent.learner.theta
    choose = type(policy).choose

    def recorded(self, parameters, given, noise, masks=None):
        outputs.append(given)
        return choose(self, parameters, given, noise, masks)

    monkeypatch.setattr(type(policy), "choose", recorded)
    episodes = played(agent, kind, len(SEEDS))
    of_steps = np.zeros((*episodes.mask.shape, policy.mlp.outputs), np.float32)
    for t, given in enumerate(outputs):
        of_steps[episodes.mask[:, t] > 0, t] = given

    class Known:
        """A network whose outputs are known."""

        outputs = policy.mlp.outputs

        def __call__(self, layers, x):
            return of_steps

    actions = episodes.actions[:, :, None]
    when_played = type(policy)(Known(), *([policy.heads] if kind == "choices" else [])).log_prob(theta, 0, actions)
    in_update = policy.log_prob(theta, episodes.observations, actions)
    where = episodes.mask > 0
    np.testing.assert_allclose(np.asarray(in_update)[where], np.asarray(when_played)[where], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["choice", "choices", "number"])
def test_episodes_do_not_depend_on_those_beside_them(kind):
    agent = agent_for(kind)
    together, alone = played(agent, kind, len(SEEDS)), played(agent, kind, 1)
    np.testing.assert_allclose(together.actions, alone.actions, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(together.rewards, alone.rewards)


def test_in_blocks_to_the_last_bit():
    """As in training, where workers play single episodes."""
    agent, kind = agent_for("number"), "number"
    actor = agent.actor()
    in_blocks = Actor(actor.policy, actor.parameters, actor.observation_space, blocks=Blocks.of(np.arange(len(SEEDS))))
    together, alone = (played(agent, kind, at_once, actor=in_blocks) for at_once in (len(SEEDS), 1))
    np.testing.assert_array_equal(together.actions, alone.actions)
    np.testing.assert_allclose(together.actions, played(agent, kind, 4).actions, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["choice", "choices", "number"])
def test_ones_own_loop_takes_the_actions_of_evaluate(kind):
    agent, env = agent_for(kind), Noisy(kind)
    scripts = play_policy(agent, Noisy(kind), 5, seed=1, deterministic=True, gamma=1.0, keep_scripts=True).scripts
    for number, script in enumerate(scripts):
        observation, _ = env.reset(seed=evaluation_stream_seed(1, EvaluationStream.EPISODES, number))
        state, done, actions = None, False, []
        while not done:
            action, state = agent.predict(observation, state, deterministic=True)
            observation, _, done, _, _ = env.step(action)
            actions.append(action)
        np.testing.assert_allclose(actions, np.asarray(script.actions), rtol=1e-6)


def test_predict_for_several_environments():
    agent, rng = agent_for("number"), np.random.default_rng(0)
    first, second, third = (rng.normal(size=(3, 1)).astype(np.float32) for _ in range(3))
    _, one = agent.predict(first, deterministic=True)
    assert one.shape == (3, SIZE)
    kept = one.copy()
    _, two = agent.predict(second, one, np.array([False, True, False]), deterministic=True)
    np.testing.assert_array_equal(one, kept, "a caller's own array is not changed")
    actions, _ = agent.predict(third, two, [False, False, True], deterministic=True)
    for row, past in enumerate([(first, second, third), (second, third), (third,)]):
        state = None
        for observations in past:
            action, state = agent.predict(observations[row], state, deterministic=True)
        assert state.shape == (SIZE,)
        np.testing.assert_allclose(actions[row], action, rtol=1e-5)
    afresh, _ = agent.predict(third, two, episode_start=True, deterministic=True)
    np.testing.assert_array_equal(afresh, agent.predict(third, deterministic=True)[0])
    as_in_sb3, _ = agent.predict(third[0], two[0], episode_start=np.array([True]), deterministic=True)
    np.testing.assert_allclose(as_in_sb3, afresh[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"state": np.zeros((2, SIZE))},
            r"array of shape \(3, 5\). Pass the state that predict returned last",
        ),
        ({"state": np.zeros((3, SIZE), int)}, r"a finite array of shape \(3, 5\)"),
        ({"state": (np.zeros((1, 3, SIZE)), np.zeros((1, 3, SIZE)))}, r"a finite array of shape \(3, 5\)"),
        ({"state": np.full((3, SIZE), np.nan)}, r"a finite array of shape"),
        ({"episode_start": [True, False]}, r"episode_start of shape \(2,\): observations are of shape \(3,\)"),
    ],
)
def test_wrong_states(given, message):
    with pytest.raises(ValueError, match=message):
        agent_for("choice").predict(np.zeros((3, 1), np.float32), **given)


def test_agents_without_memory_return_the_state_they_are_given():
    agent = steadyrl.Reinforce(partial(Noisy, "choice"), hidden=(4,))
    state = object()
    assert agent.predict(np.zeros(1, np.float32), state, True)[1] is state
