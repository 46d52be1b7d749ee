"""Real conversations in every form, and nothing of them lost."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from factory.data.chat import dialogue, openai, sharegpt, tools
from factory.data.kinds import Message
from factory.errors import BadRow


def rows(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = data.decode()
    return json.loads(text) if text.startswith("[") else [*map(json.loads, text.splitlines())]


def roles(conversations: list[list[Message]]) -> Counter[str]:
    return Counter(message.role for one in conversations for message in one)


def test_agent_trajectories(shared_data: Path):
    found = rows(shared_data / "tau_bench_trajectories" / "gpt-4o-airline.json.gz")
    read = [openai.messages(one, "traj") for one in found]
    assert roles(read) == {"assistant": 2454, "user": 1490, "tool": 1164, "system": 200}
    assert sum(len(message.tool_calls) for one in read for message in one) == 1164
    for one, messages in zip(found, read, strict=True):
        assert [turn["content"] or "" for turn in one["traj"]] == [turn.text for turn in messages]


def test_function_calls_of_glaive(shared_data: Path):
    found = rows(shared_data / "tool_use_llamafactory" / "glaive_toolcall_en_demo.json")
    read = [sharegpt.messages(one) for one in found]
    assert roles(read) == {"user": 746, "assistant": 746 + 211, "tool": 211}
    declared = [tools(one) for one in found]
    assert declared.count(None) == 109
    wanted = json.loads(found[0]["conversations"][3]["value"])
    assert json.loads(read[0][3].tool_calls[0].arguments) == wanted["arguments"]


def test_reasoning_with_tools(shared_data: Path):
    found = rows(shared_data / "tool_use_llamafactory" / "reason_tool_use_demo_50.jsonl")
    read = [openai.messages(one, reasoning="think") for one in found]
    calls = sum(len(message.tool_calls) for one in read for message in one)
    assert calls == 41 + 2 * 9 + 3 * 3
    assert roles(read)["tool"] == 42 + 6  # five results stood for two calls, or for three
    assert sum("<think>" in message.text for one in read for message in one) == 112
    with pytest.raises(BadRow, match="reasoning in a turn"):
        openai.messages(found[0])


def test_clinical_agents(shared_data: Path):
    folder = shared_data / "tool_use_medagentbench"
    expert = rows(folder / "expert_trajectories.jsonl.gz")
    read = [openai.messages(one, "turns", roles={"agent": "assistant"}) for one in expert]
    assert roles(read) == {"user": 219, "assistant": 219}
    tuned = [openai.messages(one) for one in rows(folder / "qwen_sft_openai.jsonl.gz")]
    assert roles(tuned) == {"user": 168, "assistant": 168}


def test_identity_conversations(shared_data: Path):
    found = rows(shared_data / "general_fastchat" / "dummy_conversation.json")
    assert roles([sharegpt.messages(one) for one in found]) == {"user": 1000, "assistant": 1000}


def test_doctors_and_patients(shared_data: Path):
    speakers = {
        "Doctor": "assistant",
        "Patient": "user",
        "Guest_family": "user",
        "Guest_clinician": "user",
    }
    path = shared_data / "mts_dialog" / "MTS-Dialog-TrainingSet.csv"
    read: list[list[Message]] = []
    reasons = Counter[str]()
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            try:
                read.append(dialogue.messages(row["dialogue"], speakers))
            except BadRow as error:
                reasons[error.reason] += 1
    assert len(read) + reasons.total() == 1201
    assert reasons == {"unknown speaker": 4, "no assistant turn": 1}
