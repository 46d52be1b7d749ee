"""What a run is expected to come to: against the sampler itself, source by source."""

import pytest

from factory.data.mixing import LockedPacking, LockedStage, Sampler, Supply
from factory.data.mixing.expect import expectations
from factory.data.mixing.measure import Measured
from factory.errors import SpecError
from tests.data.mixing.clinical import DATA_SETTINGS
from tests.data.mixing.test_lock import locked, source

CONTEXT = 1_000
KEYS = ("public/text/a", "public/text/b", "public/text/c")
LENGTHS = ((900, 600), (100, 20), (40, 40))
"""Tokens and loss tokens of each sample."""


def measures(dropped=0):
    return [
        Measured(
            samples=100,
            kept=100 - dropped,
            lengths=[tokens] * (100 - dropped),
            loss_tokens=loss * (100 - dropped),
            dropped={"no loss token": dropped} if dropped else {},
        )
        for tokens, loss in LENGTHS
    ]


def mix_of(basis="sample", weights=(1.0, 2.0, 7.0), caps=(None, None, None), stages=None):
    sources = tuple(
        source(key, samples=2_000, max_epochs=cap) for key, cap in zip(KEYS, caps, strict=True)
    )
    made = stages or [(0, CONTEXT, weights)]
    return locked(
        packing=LockedPacking(regime="naive", buffer=10_000, alignment=1, shuffle=10),
        basis=basis,
        sources=sources,
        stages=tuple(LockedStage(from_step=a, context=b, weights=c) for a, b, c in made),
    )


def settings(steps=200, **changes):
    from dataclasses import replace

    return replace(DATA_SETTINGS, steps=steps, sequences=10, context=CONTEXT, **changes)


def drawn(lock, steps):
    """What the sampler draws until so many full steps are filled."""
    supply = [
        Supply(key=one.key, samples=one.samples, max_epochs=one.max_epochs) for one in lock.sources
    ]
    sampler = Sampler(lock.stages[0].weights, basis=lock.basis, supply=supply)
    left, amounts = 0.0, [[0, 0, 0] for _ in KEYS]
    for step in range(steps):
        stage = lock.stages[lock.stage(step)]
        sampler.use(stage.weights)
        left += 10 * stage.context
        while left > 0:
            at = sampler.choose()
            tokens, loss = LENGTHS[at]
            sampler.record(at, samples=1, tokens=tokens, loss_tokens=loss)
            for which, amount in enumerate((1, tokens, loss)):
                amounts[at][which] += amount
            left -= tokens
    return amounts


CASES = {
    "by sample": {},
    "by token": {"basis": "token"},
    "by loss token": {"basis": "loss_token"},
    "a cap": {"caps": (0.5, None, None)},
    "two caps": {"basis": "token", "caps": (None, 1.5, 3.0), "weights": (1.0, 1.0, 1.0)},
    "stages": {
        "stages": [
            (0, 500, (1.0, 2.0, 7.0)),
            (50, CONTEXT, (0.0, 1.0, 1.0)),
            (120, 2_000, (5, 1, 0)),
        ]
    },
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_what_the_sampler_draws(case):
    """But for the last sequence of each buffer, which a run does not fill."""
    lock = mix_of(**case)
    steps = 200
    expected = expectations(lock, settings(steps), [measures()] * len(lock.stages))
    real = drawn(lock, steps)
    total = [sum(one[which] for one in real) for which in range(3)]
    for one, amounts, source_ in zip(expected.sources, real, lock.sources, strict=True):
        found = (one.samples, one.tokens, one.loss_tokens)
        assert found == pytest.approx(amounts, rel=0.008, abs=1_000)
        shares = (one.sample_share, one.token_share, one.loss_token_share)
        for share, amount, whole in zip(shares, amounts, total, strict=True):
            assert share == pytest.approx(amount / whole, abs=0.002)
        assert one.epochs == pytest.approx(amounts[0] / source_.samples, rel=0.008, abs=0.01)
    assert expected.tokens == pytest.approx(total[1], rel=0.008)
    assert expected.ends_at is None


def test_a_cap_is_reached_at_its_step_and_the_others_take_over():
    lock = mix_of(weights=(1.0, 1.0, 0.0), caps=(None, 0.09, None), basis="token")
    expected = expectations(lock, settings(100), [measures()])
    a, b, _ = expected.sources
    # 180 samples of 100 tokens, at half of 10,000 tokens a step
    assert b.capped_at == 4
    assert b.epochs == pytest.approx(0.09)
    assert b.tokens == pytest.approx(18_000)
    assert a.tokens == pytest.approx(1_000_000 - 18_000, rel=0.001)
    assert a.capped_at is None


def test_caps_that_end_a_run_say_when():
    lock = mix_of(weights=(0.0, 1.0, 1.0), caps=(None, 0.49, 0.49))
    expected = expectations(lock, settings(100), [measures()])
    assert expected.ends_at == 14  # 980 of each, 137,200 tokens at 10,000 a step
    assert expected.tokens == pytest.approx(137_200)


def test_without_packing_each_sequence_takes_a_place():
    lock = mix_of(weights=(1.0, 1.0, 2.0)).model_copy(
        update={"packing": mix_of().packing.model_copy(update={"regime": "none"})}
    )
    expected = expectations(lock, settings(100), [measures()])
    assert [one.samples for one in expected.sources] == pytest.approx([250, 250, 500])


@pytest.mark.parametrize(
    ("alignment", "sequences"),
    [
        (1, 32),  # a long piece and a short one fill a sequence
        (8, 32 + 4),  # 904 and 104 do not fit together; nine short ones do
    ],
)
def test_sequences_are_as_full_as_packing_makes_them(alignment, sequences):
    """A buffer of 64 pieces holds 32 of 900 tokens and 32 of 100."""
    lock = mix_of(weights=(1.0, 1.0, 0.0)).model_copy(
        update={
            "packing": LockedPacking(
                regime="boundary_aware", buffer=64, alignment=alignment, shuffle=10
            )
        }
    )
    expected = expectations(lock, settings(100), [measures()])
    assert expected.tokens == pytest.approx(1_000 * 32 * (900 + 100) / sequences)
    assert expected.sources[0].samples == pytest.approx(expected.sources[1].samples)


def test_dropped_samples_are_drawn_again():
    lock = mix_of(weights=(1.0, 1.0, 0.0))
    half = [measures()[0], measures(50)[1], measures()[2]]
    a, b, _ = expectations(lock, settings(100), [half]).sources
    assert b.dropped == 0.5
    assert a.samples == pytest.approx(b.samples)
    assert b.epochs == pytest.approx(2 * a.epochs)


def test_a_dataset_that_is_dropped_whole_is_refused_with_the_reasons():
    with pytest.raises(SpecError) as refused:
        expectations(mix_of(), settings(), [[measures()[0], measures(100)[1], measures()[2]]])
    assert "Nothing of public/text/b can be trained on: of the 100 samples" in str(refused.value)
    assert "all are dropped (100 no loss token)" in str(refused.value)


def test_stages_after_the_last_step_are_not_read():
    lock = mix_of(stages=[(0, CONTEXT, (1.0, 1.0, 0.0)), (500, CONTEXT, (0.0, 0.0, 1.0))])
    expected = expectations(lock, settings(100), [measures()] * 2)
    assert expected.sources[2].samples == 0
    assert expected.sources[2].mean_tokens == 40
