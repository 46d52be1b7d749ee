"""Resume: a run that was preempted or killed goes on exactly where its last checkpoint left it.

`publisher` and `manager` complete a checkpoint with the state of the data, `start` chooses the one
to go on from, `identity` refuses what would not continue exactly, `watch` hears the word to stop.
Which checkpoints are complete is in `factory.namespace.checkpoints`.
"""
