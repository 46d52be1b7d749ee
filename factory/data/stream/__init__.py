"""Stream: the datasets of a mix as batches of packed sequences, with an account of each batch.

`account` says what a batch holds. Nothing here needs Megatron-Bridge, so that the stream of a run
can be made again from the data alone.
"""
