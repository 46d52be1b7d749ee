"""The stream of a run: nothing is lost, nothing crosses, and it goes on exactly where it was."""

import io
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factory.data.encoding import Encoder, load
from factory.data.encoding.byte_level import END
from factory.data.stream.account import FIELDS, SAMPLES, TOKENS
from factory.errors import RunFailed, SpecError
from tests.data.stream.conftest import LONG, SHORT, Mixture, read, stop

pytestmark = pytest.mark.slow

NAMES = ("tokens", "labels", "loss_mask", "position_ids")


def digests(batches):
    return [batch["account"].digest for batch in batches]


def documents(batch):
    """The documents of a batch, by the boundaries that attention is told; padding is one, too."""
    ends = batch["cu_seqlens_q"].tolist()
    starts = batch.get("cu_seqlens_q_padded", batch["cu_seqlens_q"]).tolist()
    for at, (first, last) in enumerate(pairwise(ends)):
        where = slice(starts[at], starts[at] + last - first)
        yield tuple(batch[name][0, where].numpy() for name in NAMES)


@pytest.mark.parametrize(("workers", "rank", "ranks"), [(0, 0, 1), (2, 0, 1), (0, 1, 2)])
def test_it_goes_on_exactly_where_it_was(mixture: Mixture, workers, rank, ranks):
    import torch

    place = {"workers": workers, "rank": rank, "ranks": ranks}
    whole = mixture.loader(**place)
    expected = digests(read(whole, 60))
    stop(whole)
    for made in (1, 22, 39):
        first = mixture.loader(**place)
        assert digests(read(first, made)) == expected[:made]
        kept = io.BytesIO()
        torch.save(first.save_state_rank(), kept)
        stop(first)
        assert kept.tell() < 1_000_000
        kept.seek(0)
        second = mixture.loader(**place)
        second.restore_state_rank(torch.load(kept, weights_only=False))
        assert digests(read(second, 60 - made)) == expected[made:]
        stop(second)


@pytest.mark.parametrize("regime", ["none", "naive", "boundary_aware"])
def test_every_regime_goes_on_exactly_over_the_end_of_epochs_and_stages(mixture: Mixture, regime):
    """Epochs of the sources and stages end between the places where it is continued."""
    staged = mixture.packed(regime=regime, buffer=24).stages(
        (0, 256, (1, 1, 1)), (3, 256, (0, 1, 1)), (6, 320, (1, 0, 1))
    )
    expected = digests(read(staged.loader(), 40))
    going = staged.loader()
    for made in range(0, 40, 5):
        assert digests(read(going, 5)) == expected[made : made + 5]
        state = going.save_state_rank()
        going = staged.loader()
        going.restore_state_rank(state)


def test_ranks_and_workers_read_parts_of_their_own_and_each_sample_once_an_epoch(mixture: Mixture):
    only = mixture.only(SHORT)
    seen: list[Counter[int]] = []
    for rank in range(2):
        reading = only.loader(rank=rank, ranks=2)
        drawn: list[int] = []
        for batch in read(reading, 40):
            drawn += batch["account"].drawn[:, 1].tolist()
        seen.append(Counter(drawn[:60]))
        assert max(seen[-1].values()) <= 2, "packs come in another order than samples"
    assert not set(seen[0]) & set(seen[1])
    assert len(seen[0]) + len(seen[1]) > 100


@pytest.mark.parametrize("regime", ["none", "naive", "boundary_aware"])
def test_one_epoch_is_every_label_once_and_the_rest_is_counted(mixture: Mixture, regime):
    """The source may be read once; what is drawn last is trained on before the run ends."""
    once = mixture.packed(regime=regime).only(LONG).source(LONG, max_epochs=1.0)
    found: Counter[int] = Counter()
    drawn: list[int] = []
    for batch in until_it_ends(once, "was read 1 times of at most 1", micro_batch_size=1):
        account = batch["account"]
        mask = batch["loss_mask"][0].numpy() > 0
        found.update(batch["labels"][0].numpy()[mask].tolist())
        drawn += account.drawn[:, 1].tolist()
        assert account.counts[0, TOKENS] == mask.sum()
    assert sorted(drawn) == list(range(30))
    expected: Counter[int] = Counter()
    for sample in encoded(once, LONG):
        expected.update(sample.tokens[1:].tolist())
    assert found == expected


def encoded(mixture: Mixture, key: str):
    """Every sample of a source, as the encoder makes it."""
    import json
    import tarfile

    encoder = Encoder(load("bytes"), chat="plain", longest=256)
    for shard in sorted(mixture.folders[key].glob("*.tar")):
        with tarfile.open(shard) as tar:
            for member in tar:
                file = tar.extractfile(member)
                assert file is not None
                yield encoder.encode(json.load(file))


def test_a_document_ends_with_its_own_end_and_predicts_nothing_of_the_next(mixture: Mixture):
    ends = 0
    for batch in read(mixture.loader(), 30):
        for tokens, labels, mask, positions in documents(batch):
            assert positions.tolist() == list(range(len(tokens)))
            if not mask.any():
                assert set(tokens.tolist()) == {0}, "only padding is a document without loss"
                continue
            assert tokens[1:].tolist() == labels[:-1].tolist()
            ends += labels[-1] == END
        assert batch["tokens"].shape == batch["labels"].shape == (1, 512)
    assert ends > 50


def test_documents_begin_at_the_alignment_and_the_padding_is_counted(mixture: Mixture):
    aligned = mixture.packed(alignment=16)
    for batch in read(aligned.loader(), 20):
        account = batch["account"]
        padded = batch["cu_seqlens_q_padded"].numpy()
        true = batch["cu_seqlens_q"].numpy()
        assert not (padded % 16).any()
        assert padded[-1] == account.slots == 512
        assert account.counts[:, TOKENS].sum() + account.aligning + account.ending == 512
        for tokens, labels, mask, positions in documents(batch):
            assert positions.tolist() == list(range(len(tokens)))
            if mask.any():
                assert tokens[1:].tolist() == labels[:-1].tolist()
        assert (np.diff(true) <= np.diff(padded)).all()
        assert batch["max_seqlen_q"] == np.diff(padded).max()


@pytest.mark.parametrize(("workers", "ranks"), [(0, 1), (2, 1), (0, 2)])
def test_a_stage_begins_with_its_step_on_every_reader(mixture: Mixture, workers, ranks):
    """Steps of 4 batches over all ranks; from step 3 on sequences are longer, without papers."""
    staged = mixture.stages((0, 256, (1, 1, 1)), (3, 384, (0, 1, 1)))
    per_step = 4 // ranks
    for rank in range(ranks):
        reading = staged.loader(workers=workers, rank=rank, ranks=ranks)
        slots = [batch["account"].slots for batch in read(reading, 8 * per_step)]
        stop(reading)
        assert slots == [2 * 256] * 3 * per_step + [2 * 384] * 5 * per_step


def test_what_waits_at_a_change_of_stages_is_packed_into_longer_sequences(mixture: Mixture):
    staged = mixture.stages((0, 256, (1, 1, 1)), (3, 384, (1, 1, 1)))
    longest = [int(batch["max_seqlen_q"]) for batch in read(staged.loader(), 100)]
    assert max(longest[:12]) == 256
    assert max(longest[12:]) > 256
    one = mixture.only(LONG).source(LONG, max_epochs=1.0)
    both = one.stages((0, 256, (1,)), (3, 384, (1,)))
    totals: list[int] = []
    for chosen in (one, both):
        place = {"micro_batch_size": 1, "global_batch_size": 4}
        batches = until_it_ends(chosen, "was read 1 times", **place)
        totals.append(sum(int(batch["account"].counts[0, TOKENS]) for batch in batches))
    assert totals[0] == totals[1], "no position is lost at the change"


@pytest.mark.parametrize("basis", ["sample", "token", "loss_token"])
def test_shares_are_as_declared_in_the_basis(mixture: Mixture, basis):
    chosen = mixture.changed(basis=basis)
    total = sum(batch["account"].counts for batch in read(chosen.loader(), 600))
    column = {"sample": SAMPLES, "token": TOKENS, "loss_token": TOKENS + 1}[basis]
    found = total[:, column] / total[:, column].sum()
    # What waits in the buffer of 64 sequences is not counted yet.
    assert found == pytest.approx([0.1, 0.5, 0.4], abs=0.02)


def test_each_dataset_has_its_own_overflow_policy(mixture: Mixture):
    base = mixture.only(LONG).source(LONG, max_epochs=1.0)
    split = sums(base.source(LONG, overflow="split"))
    middle = sums(base.source(LONG, overflow="truncate_middle"))
    drop = sums(base.source(LONG, overflow="drop"))
    assert split["samples"] == middle["samples"] == 30
    assert not split["truncated"]
    assert not split["dropped"] + middle["dropped"]
    assert split["documents"] > 1.5 * split["samples"]
    assert middle["documents"] == middle["samples"]
    assert 0 < drop["samples"] == 30 - drop["dropped"]
    total = split["tokens"]
    assert middle["tokens"] + middle["truncated"] == total
    assert drop["tokens"] + drop["dropped tokens"] == total


def test_a_dataset_of_which_all_is_dropped_ends_the_run(mixture: Mixture):
    short = mixture.only(LONG).source(LONG, overflow="drop").stages((0, 16, (1,)))
    assert not list(until_it_ends(short, "All 30 samples .* were dropped, in every order"))


def test_a_loader_that_is_let_go_leaves_no_file_open(mixture: Mixture):
    import gc

    def opened() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    before = opened()
    for _ in range(3):
        reading = read(mixture.loader(), 20)
        assert next(reading)
        assert opened() > before
        reading.close()
        del reading
    assert opened() <= before


def test_another_version_than_the_lock_names_is_refused(mixture: Mixture):
    with pytest.raises(SpecError, match="holds 30 samples, but the mix was locked with 31"):
        mixture.source(LONG, samples=31).loader()


def test_a_source_smaller_than_its_readers_is_refused(mixture: Mixture):
    with pytest.raises(SpecError, match="has 30 samples for 32 readers"):
        mixture.loader(ranks=16, workers=2, micro_batch_size=1, global_batch_size=16)


def until_it_ends(mixture: Mixture, said: str, **place: Any) -> Iterator[dict[str, Any]]:
    """Every batch of a stream that ends with this error."""
    reading = iter(read(mixture.loader(**place), 10_000))
    with pytest.raises(RunFailed, match=said):
        yield from reading


def sums(mixture: Mixture) -> Counter[str]:
    """Totals of a stream that ends."""
    found: Counter[str] = Counter()
    for batch in until_it_ends(mixture, "The caps of the mix", micro_batch_size=1):
        account = batch["account"]
        found.update(dict(zip(FIELDS, account.counts[0].tolist(), strict=True)))
        for samples, tokens in account.dropped.values():
            found.update({"dropped": samples, "dropped tokens": tokens})
    return found
