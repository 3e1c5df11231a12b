"""PPO in one file on HazardWorld-Budgetary-v0, without the framework: gymnasium, hazardworld, numpy, torch.

The agent sees the picture and which words the sentence has, and pays a fixed price per cost past the budget (FPO). It
is a starting point, not a result: 20,000 steps are far too few, and a bag of words knows nothing of word order.

    python examples/ppo_on_hazardworld.py --steps 20000
"""

import argparse
import re
import zlib

import gymnasium
import numpy as np
import torch
from torch import nn

import hazardworld  # noqa: F401  (registers the ids)

ENVS, LENGTH, EPOCHS, MINIBATCHES = 8, 128, 4, 4
GAMMA, LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.99, 0.95, 0.2, 0.01, 1e-3
WORDS = 64  # buckets that words are hashed into
PRICE = 0.5  # reward taken away per entered cell past the budget
OBJECTS = 13  # MiniGrid's object numbers, with our water and grass


def encode(obs: dict) -> torch.Tensor:
    """[N, 7*7*13 + 64]: one-hot objects in view, and which word buckets the sentence fills."""
    image = torch.from_numpy(obs["image"][..., 0].astype(np.int64))
    words = torch.zeros(len(image), WORDS)
    for row, sentence in enumerate(obs["mission"]):
        for word in re.findall(r"[a-z]+", sentence.lower()):
            words[row, zlib.crc32(word.encode()) % WORDS] = 1.0
    return torch.cat([nn.functional.one_hot(image, OBJECTS).flatten(1).float(), words], dim=1)


class Agent(nn.Module):
    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, 64), nn.Tanh())
        self.policy, self.value = nn.Linear(64, actions), nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.distributions.Categorical, torch.Tensor]:
        hidden = self.body(x)
        return torch.distributions.Categorical(logits=self.policy(hidden)), self.value(hidden)[:, 0]


def main(steps: int = 20_000, seed: int = 0) -> None:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make("HazardWorld-Budgetary-v0", labels=False, disable_env_checker=True)] * ENVS
    )
    obs, _ = envs.reset(seed=seed)
    x, fresh = encode(obs), torch.zeros(ENVS, dtype=torch.bool)
    agent = Agent(x.shape[1], 4)
    optimizer = torch.optim.Adam(agent.parameters(), LEARNING_RATE)
    running_return, running_cost = np.zeros(ENVS), np.zeros(ENVS)

    for update in range(1, max(1, steps // (ENVS * LENGTH)) + 1):
        inputs = torch.zeros(LENGTH, ENVS, x.shape[1])
        actions = torch.zeros(LENGTH, ENVS, dtype=torch.int64)
        log_probs, rewards, values = torch.zeros(3, LENGTH, ENVS)
        terminated, done, valid = torch.zeros(3, LENGTH, ENVS, dtype=torch.bool)
        finished: list[tuple[float, float, float]] = []  # return, cost, excess of each episode that ended
        for t in range(LENGTH):
            with torch.no_grad():
                policy, values[t] = agent(x)
            actions[t] = policy.sample()
            inputs[t], log_probs[t] = x, policy.log_prob(actions[t])
            valid[t] = ~fresh  # after its end a row ignores one action and starts anew (NEXT_STEP autoreset)
            obs, reward, ended, cut, info = envs.step(actions[t].numpy())
            budget = np.array([np.ravel(row)[0] for row in info["budget"]], np.float64)
            before = np.maximum(running_cost - budget, 0)
            running_return, running_cost = running_return + reward, running_cost + info["cost"]
            excess = np.maximum(running_cost - budget, 0)
            rewards[t] = torch.from_numpy(reward - PRICE * (excess - before))
            terminated[t] = torch.from_numpy(ended)
            done[t] = fresh = torch.from_numpy(ended | cut)
            for n in np.flatnonzero(ended | cut):
                finished.append((running_return[n], running_cost[n], excess[n]))
                running_return[n] = running_cost[n] = 0.0
            x = encode(obs)

        with torch.no_grad():
            following, last = agent(x)[1], torch.zeros(ENVS)
        advantages = torch.zeros(LENGTH, ENVS)
        for t in reversed(range(LENGTH)):
            delta = rewards[t] + GAMMA * following * ~terminated[t] - values[t]
            advantages[t] = last = delta + GAMMA * LAMBDA * last * ~done[t]
            following = values[t]
        keep = valid.flatten()
        batch = [part.flatten(0, 1)[keep] for part in (inputs, actions, log_probs, advantages, advantages + values)]

        for _ in range(EPOCHS):
            for index in torch.randperm(int(keep.sum())).chunk(MINIBATCHES):
                mb_x, mb_action, mb_log_prob, mb_advantage, mb_return = (part[index] for part in batch)
                policy, value = agent(mb_x)
                mb_advantage = (mb_advantage - mb_advantage.mean()) / (mb_advantage.std() + 1e-8)
                ratio = (policy.log_prob(mb_action) - mb_log_prob).exp()
                surrogate = torch.min(ratio * mb_advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * mb_advantage).mean()
                loss = 0.5 * (value - mb_return).square().mean() - surrogate - ENTROPY * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        told = "no episode ended"
        if finished:
            told = "return {:5.2f}  cost {:5.2f}  past the budget {:5.2f}".format(*np.mean(finished, axis=0))
        print(f"{update * ENVS * LENGTH:7d} steps  {told}", flush=True)
    envs.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
