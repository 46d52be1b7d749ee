"""A run's ledger against its mix: the shares of a real clinical run, drawn by the real sampler."""

import itertools

import pytest

from factory.observe.mixture.realized import realized
from tests.observe.mixture.made import CLINICAL, READERS, clinical_lines, lock_of


@pytest.fixture(scope="module")
def clinical():
    return realized(lock_of(), clinical_lines("sample"), READERS)


def by_role(mix, field: str) -> dict[str, float]:
    ordered = sorted(mix.sources, key=lambda one: one.role)
    return {
        role: sum(getattr(one, field) for one in group)
        for role, group in itertools.groupby(ordered, key=lambda one: one.role)
    }


def test_shares_by_three_ways_of_counting_are_those_of_the_real_run(clinical):
    samples = by_role(clinical, "share_of_samples")
    assert samples["domain_shift"] == pytest.approx(0.71, abs=0.002)
    assert samples["warmup"] == pytest.approx(0.10, abs=0.002)
    assert samples["retention"] == pytest.approx(0.19, abs=0.002)
    assert by_role(clinical, "share_of_tokens")["domain_shift"] == pytest.approx(0.43, abs=0.01)
    assert by_role(clinical, "share_of_loss_tokens")["domain_shift"] == pytest.approx(
        0.51, abs=0.01
    )
    (tools,) = (one for one in clinical.sources if one.counts.source.endswith("tool_use"))
    assert tools.share_of_samples == pytest.approx(0.12, abs=0.002)
    assert tools.share_of_loss_tokens == pytest.approx(0.05, abs=0.003)


def test_a_small_source_comes_nine_times_while_most_of_the_largest_is_unseen(clinical):
    largest = max(clinical.sources, key=lambda one: one.size)
    smallest = min(clinical.sources, key=lambda one: one.size)
    assert smallest.epochs == pytest.approx(9.0, abs=0.1)
    assert smallest.coverage == pytest.approx(1.0, abs=0.02)
    assert largest.epochs == largest.coverage < 0.2
    assert smallest.counts.samples > smallest.counts.distinct


def test_shares_in_the_basis_of_the_mix_are_within_their_bands_and_nothing_is_said(clinical):
    assert all(one.within for one in clinical.sources)
    assert clinical.alarms == ()
    assert sum(one.declared for one in clinical.sources) == pytest.approx(1)


@pytest.mark.parametrize(
    ("basis", "field"), [("token", "share_of_tokens"), ("loss_token", "share_of_loss_tokens")]
)
def test_another_basis_reaches_its_own_shares(basis, field):
    mix = realized(lock_of(basis=basis), clinical_lines(basis), READERS)
    assert mix.alarms == ()
    for one, kind in zip(mix.sources, CLINICAL, strict=True):
        assert getattr(one, field) == pytest.approx(kind.weight / 100, abs=0.002)
        assert one.within


def test_every_line_is_as_if_the_ledger_had_begun_with_it():
    """Lines are sums, so a line that is lost takes nothing with it."""
    lines = clinical_lines("sample")
    whole = realized(lock_of(), lines, READERS)
    fewer = realized(lock_of(), [*lines[::3], lines[-1]], READERS)
    assert [one.counts for one in fewer.sources] == [one.counts for one in whole.sources]
    for one, other in zip(fewer.sources, whole.sources, strict=True):
        assert one.declared == pytest.approx(other.declared)
