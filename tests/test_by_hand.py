"""Derivatives written by hand, for speed, against torch's own: sparse first layers, and the LSTM of sentences."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from plugins.policies import _lstm, _sparse
from plugins.policies._lstm import Queue, last_states
from plugins.policies._nets import Twin, dense
from plugins.policies._sentence import BUCKETS, WORDS, SentenceReader
from plugins.policies._sparse import sparse_linear


def both_products(output, weights, last, change):
    """J'u by ``weights``, and J v: what an optimizer asks of a network (_fisher.py)."""
    pulled = torch.autograd.grad(output, weights, last, retain_graph=True)
    seed = torch.zeros_like(output, requires_grad=True)
    linear = torch.autograd.grad(output, weights, seed, create_graph=True)
    (pushed,) = torch.autograd.grad(sum((a * b).sum() for a, b in zip(linear, change, strict=True)), seed)
    return [*pulled, pushed]


def assert_same(found, wanted):
    assert any(bool(other.abs().sum() > 0) for other in wanted), "there is something to compare"
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def mostly_zeros(rows, columns, generator):
    x = torch.randn(rows, columns, generator=generator)
    return x * (torch.rand(rows, columns, generator=generator) < 0.15)


@pytest.mark.parametrize("rows", [1, 7, 300])
@pytest.mark.parametrize("outputs", [1, 5, 64])
def test_a_sparse_layer_is_a_layer(rows, outputs):
    generator = torch.Generator().manual_seed(rows * outputs)
    x = mostly_zeros(rows, 40, generator)
    x[0], x[0, 3], x[-1, 0], x[-1, -1] = 0, 1, 2, -3  # an almost empty row, the first and the last column
    weight = torch.randn(outputs, 40, generator=generator, requires_grad=True)
    found, wanted = sparse_linear(x, weight), F.linear(x, weight)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    last, change = torch.randn(rows, outputs, generator=generator), torch.randn(outputs, 40, generator=generator)
    assert_same(*(both_products(out, [weight], last, [change]) for out in (found, wanted)))


def test_nothing_but_zeros_and_no_rows_at_all():
    weight = torch.randn(3, 6, requires_grad=True)
    assert torch.equal(sparse_linear(torch.zeros(4, 6), weight), torch.zeros(4, 3))
    assert sparse_linear(torch.zeros(0, 6), weight).shape == (0, 3)
    (gradient,) = torch.autograd.grad(sparse_linear(torch.zeros(4, 6), weight).sum(), weight)
    assert torch.equal(gradient, torch.zeros(3, 6))


def test_who_wants_a_gradient_of_the_input_gets_one():
    weight, x = torch.randn(3, 6, requires_grad=True), torch.randn(4, 6, requires_grad=True)
    (gradient,) = torch.autograd.grad(sparse_linear(x, weight).sum(), x)
    torch.testing.assert_close(gradient, weight.sum(0).expand(4, 6))


@pytest.fixture
def by_hand(monkeypatch):
    """How often our own code was in place of torch's."""
    calls = []
    for module, name in ((_sparse, "_by_row"), (_lstm, "_read")):
        ours = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, ours=ours: calls.append(1) or ours(*a))
    return calls


def test_networks_with_a_sparse_first_layer_are_the_same_networks(by_hand):
    generator = torch.Generator().manual_seed(0)
    x, text = mostly_zeros(50, 30, generator), torch.randn(50, 4, generator=generator)
    for made in (lambda sparse: dense(34, (8, 8), 3, 1.0, sparse), lambda sparse: Twin(34, (8, 8), sparse)):
        one, other = made(True), made(False)
        other.load_state_dict(one.state_dict())
        outs = [torch.stack(out) if isinstance(out := net(x, text), tuple) else out for net in (one, other)]
        change = [torch.randn(p.shape, generator=generator) for p in one.parameters()]
        last = torch.randn(outs[0].shape, generator=generator)
        nets = zip(outs, (one, other), strict=True)
        assert_same(*(both_products(out, list(net.parameters()), last, change) for out, net in nets))
        assert by_hand, "learning, it is ours"
        by_hand.clear()
        with torch.no_grad():
            torch.testing.assert_close(torch.as_tensor(one(x, text)[0]), torch.as_tensor(outs[0][0]))
        one.requires_grad_(False)(x, text)
        assert not by_hand, "acting and exporting, it is plain torch"


@pytest.mark.parametrize("lengths", [[1], [4, 4, 4], [3, 1, 9, 2, 9, 1, 5]])
@pytest.mark.parametrize("size", [1, 5, 32])
def test_an_lstm_by_hand_is_an_lstm(lengths, size):
    generator = torch.Generator().manual_seed(size)
    length, words = torch.tensor(lengths), max(lengths)
    lstm = nn.LSTM(6, size, batch_first=True)
    x = torch.randn(len(lengths), words, 6, generator=generator, requires_grad=True)
    queue = Queue.of(length)
    found = last_states(lstm, x[queue.sentence, queue.word], queue)
    wanted = lstm(x)[0][torch.arange(len(lengths)), length - 1]
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    weights = [x, *lstm.parameters()]
    change = [torch.randn(p.shape, generator=generator) for p in weights]
    last = torch.randn(found.shape, generator=generator)
    assert_same(*(both_products(out, weights, last, change) for out in (found, wanted)))


def test_a_gradient_at_weights_that_were_changed_since_is_refused():
    lstm, queue = nn.LSTM(2, 3, batch_first=True), Queue.of(torch.tensor([2]))
    last = last_states(lstm, torch.randn(2, 2), queue)
    with torch.no_grad():
        lstm.weight_hh_l0.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        last.sum().backward()


def test_a_sentence_reader_reads_alike_while_it_learns_and_while_it_acts(by_hand):
    torch.manual_seed(0)
    reader = SentenceReader(words=4, text=5)
    words = torch.randint(1, BUCKETS, (9, WORDS, 2))
    for sentence, length in enumerate([3, WORDS, 1, 7, 7, 2, 5, 0, 11]):  # one says nothing
        words[sentence, length:] = 0
    learning = reader._read(words)
    assert len(by_hand) == 1, "learning, it is ours"
    with torch.no_grad():
        acting = reader._read(words)
    reader.requires_grad_(False)._read(words)
    assert len(by_hand) == 1, "acting and exporting, it is plain torch"
    torch.testing.assert_close(learning, acting, rtol=1e-5, atol=1e-6)
    assert learning.requires_grad
