"""An interpreter that learns beside the policy, from what the policy meets (training.interpreter.when: together).

An ablation of the paper's order of stages. After each update of the policy the interpreter takes its share of stage 1's
gradient steps on the rollout that was just collected. The policy's costs are as good as the reading was when they
were booked: wrong at first, and on the move all along. That is the point of the comparison.
"""

from __future__ import annotations

import torch
from torch import Tensor

from framework.interfaces import (
    ConstraintEnv,
    ConstraintInterpreter,
    Metrics,
    Timestep,
    adam_tensors,
    load_adam_tensors,
)
from framework.reading import Batches, reading_loss
from framework.resume import named, part
from framework.schema import Training
from framework.seeding import generator
from framework.walks import Diary


class Tutor:
    """Watches a rollout with the truth beside it, then teaches."""

    def __init__(self, interpreter: ConstraintInterpreter, env: ConstraintEnv, training: Training, seed: int) -> None:
        self.interpreter, self.env = interpreter, env
        self.diary = Diary(env)
        self.batch = training.interpreter.batch
        self.lessons = max(1, training.interpreter.iterations // max(1, training.steps // training.batch))
        self.stream = generator(seed, "minibatches")
        self.adam = torch.optim.Adam(interpreter.parameters(), lr=training.interpreter.learning_rate)

    def watch(self, now: Timestep) -> None:
        self.diary.write(now)

    def state_dict(self) -> dict[str, Tensor]:
        """Between two updates, when the diary is empty."""
        tensors = named("interpreter", self.interpreter.state_dict()) | named("adam", adam_tensors(self.adam))
        return tensors | {"stream": self.stream.get_state()}

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        self.interpreter.load_state_dict(part("interpreter", tensors))
        load_adam_tensors(self.adam, part("adam", tensors))
        self.stream.set_state(tensors["stream"])

    def teach(self) -> Metrics:
        """This update's gradient steps. The diary starts anew."""
        walks = self.diary.walks()
        self.diary = Diary(self.env)
        nothing_held_out = torch.zeros(len(self.env.sentences), dtype=torch.bool)
        batches = Batches(walks, nothing_held_out, recurrent=bool(self.interpreter.initial_state(1)))
        self.interpreter.train()
        loss = torch.zeros(())
        for _ in range(self.lessons if batches.has_any else 0):
            drawn = batches.draw(self.batch, self.stream, held_out=False)
            loss = reading_loss(self.interpreter, self.env.sentences, drawn)
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()
        self.interpreter.eval()
        return {"reading_loss": float(loss.detach())}
