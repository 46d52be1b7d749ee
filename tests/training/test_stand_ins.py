"""The stand-ins compute what Transformer Engine's layers are defined to compute."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _hardware(bridge: None):
    from factory.training import profiles

    with profiles.hardware("cpu"):
        yield


def config(**options):
    import torch

    return SimpleNamespace(
        **{
            "normalization": "RMSNorm",
            "layernorm_zero_centered_gamma": False,
            "params_dtype": torch.float32,
            "sequence_parallel": False,
            "attention_dropout": 0.0,
            **options,
        }
    )


def attention():
    from factory.training.cpu.layers import CpuDotProductAttention

    return CpuDotProductAttention(config())


def random(*shape):
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def packed(*ends):
    import torch

    return SimpleNamespace(cu_seqlens_q=torch.tensor([0, *ends]), cu_seqlens_q_padded=None)


def test_a_document_in_a_pack_attends_to_itself_alone():
    import torch

    query, key, value = random(12, 4, 8), random(12, 2, 8), random(12, 2, 8)
    whole = attention()(query, key, value, packed_seq_params=packed(5, 5, 12))
    alone = [
        attention()(query[part, None], key[part, None], value[part, None]).squeeze(1)
        for part in (slice(0, 5), slice(5, 12))
    ]
    assert torch.allclose(whole, torch.cat(alone), atol=1e-6)
    changed = value.clone()
    changed[:5] += 1
    after = attention()(query, key, changed, packed_seq_params=packed(5, 12))
    assert torch.equal(after[5:], whole[5:])


def test_attention_is_causal_and_equals_the_formula():
    import torch

    query, key, value = random(6, 2, 4, 8), random(6, 2, 2, 8), random(6, 2, 2, 8)
    out = attention()(query, key, value)
    q = query.permute(1, 2, 0, 3)
    k, v = (x.permute(1, 2, 0, 3).repeat_interleave(2, dim=1) for x in (key, value))
    scores = (q @ k.transpose(-1, -2)) / 8**0.5
    scores = scores.masked_fill(~torch.ones(6, 6).tril().bool(), float("-inf"))
    expected = (scores.softmax(-1) @ v).permute(2, 0, 1, 3).reshape(6, 2, 32)
    assert torch.allclose(out, expected, atol=1e-6)


@pytest.mark.parametrize("zero_centered", [False, True])
@pytest.mark.parametrize("normalization", ["RMSNorm", "LayerNorm"])
def test_norms_equal_the_formula(normalization, zero_centered):
    import torch

    from factory.training.cpu.layers import CpuNorm

    norm = CpuNorm(
        config(normalization=normalization, layernorm_zero_centered_gamma=zero_centered), 8, 1e-5
    )
    x = random(3, 8)
    centred = x if norm.rms else x - x.mean(-1, keepdim=True)
    expected = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    assert torch.allclose(norm(x), expected, atol=1e-5)
    assert (norm.weight == (0 if zero_centered else 1)).all()
    assert set(dict(norm.named_parameters())) == (
        {"weight"} if normalization == "RMSNorm" else {"weight", "bias"}
    )
