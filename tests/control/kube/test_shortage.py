"""What a scheduler's words say of a gang that does not fit."""

import pytest

from factory.control.kube.shortage import fitting, shortage

FULL = (
    "Resources were found for 2 pods from all sub-groups while sub-group workers requires 2 pods "
    "for gang scheduling. Additional pods cannot be scheduled in this sub-group due to: no nodes "
    "with enough resources were found: 2 node(s) didn't have enough resources: CPU cores. \n"
    "2 node(s) didn't have enough resources: GPUs. \n"
    "2 node(s) didn't have enough resources: memory."
)
"""KAI 0.14: a worker that takes all of its node lacks all of it where the node is taken."""


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (FULL, "GPUs"),
        (FULL.replace("GPUs", "GPU memory"), "CPU cores, GPU memory, memory"),
        ("1 node(s) didn't have enough resources: rdma.example/hca_a..", "rdma.example/hca_a"),
        ("4 node(s) didn't have enough resources: GPUs.", "GPUs"),
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "GPUs"),
        ("0/3 nodes: 1 Insufficient memory, 2 Insufficient cpu. preemption: 0/3", "cpu, memory"),
        ("training quota has reached the allowable limit of GPUs. Limit is 16 GPUs", ""),
        ("", ""),
    ],
)
def test_what_there_is_too_little_of(said: str, words: str) -> None:
    assert shortage(said) == words


@pytest.mark.parametrize(
    ("said", "pods"),
    [(FULL, 2), ("Resources were not found for pod a/b due to: x", 0), (f"{FULL[:26]}9999999", 0)],
)
def test_how_many_pods_fit(said: str, pods: int) -> None:
    assert fitting(said) == pods
