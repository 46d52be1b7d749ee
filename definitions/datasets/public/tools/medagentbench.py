"""MedAgentBench, training tasks: runs of an agent that queries patient records (English)."""

from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.data.chat import openai
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """Requests are plain text in this protocol, and what the server answers is a user's turn."""
    record = row.record
    if not record["correct"]:
        return Rejected("the agent failed")
    messages = openai.messages(record, "turns", roles={"agent": "assistant"})
    return Sample.conversation(id=row.id, messages=messages, group=row.text("task_id"))


medagentbench = Dataset(
    key=public("tools/medagentbench"),
    license="MIT",
    source=Git(
        url="https://github.com/rushilcs/MedAgentBench",
        revision="e9793e8b878ced68ab43b67a48a743eb6a2bb478",
        rows="rl_training/outputs/qwen_pipeline_v2/smoke/expert_trajectories.jsonl",
    ),
    clean=clean,
    split={"train": 0.80, "validation": 0.10, "test": 0.10},
    checks=[checks.rows(70, 100), checks.rejected("the agent failed", at_most=0.30)],
)
