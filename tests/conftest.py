"""One thread per test process: two pytest workers with a thread pool each would fight for the cores."""

import torch
from small_study import study

torch.set_num_threads(1)
__all__ = ["study"]
