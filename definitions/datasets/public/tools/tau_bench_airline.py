"""tau-bench: 200 runs of an agent at an airline's desk, of which those that succeeded (English)."""

from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.data.chat import openai
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """Each task was tried four times: its runs share a group."""
    record = row.record
    if record["reward"] != 1:
        return Rejected("the agent failed")
    task = f"task-{record['task_id']}"
    messages = openai.messages(record, "traj")
    return Sample.conversation(id=f"{task}-{record['trial']}", messages=messages, group=task)


tau_bench_airline = Dataset(
    key=public("tools/tau_bench_airline"),
    license="MIT",
    source=Git(
        url="https://github.com/sierra-research/tau-bench",
        revision="59a200c6d575d595120f1cb70fea53cef0632f6b",
        rows="historical_trajectories/gpt-4o-airline.json",
    ),
    clean=clean,
    split={"train": 0.80, "validation": 0.10, "test": 0.10},
    checks=[checks.rows(84, 84), checks.rejected("the agent failed", at_most=0.58)],
)
