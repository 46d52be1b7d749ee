"""Training: Megatron-Bridge's own `pretrain` on Ray workers, from a launch to a checkpoint.

`driver` is the process that a launch starts, `workers` the ranks, `train` what a rank does,
`profiles` what a laptop changes. This package is never imported by the control plane.
"""
