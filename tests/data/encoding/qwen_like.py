"""A tokenizer of Qwen's kind, small enough to be made in a test: byte-level BPE with a template.

Its merges are learned from a few sentences, line ends among them, so that tokens reach over the
ends of what a template and a speaker wrote, as they do in large ones.
"""

import json
from collections.abc import Sequence
from pathlib import Path

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
ADDED = (
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
"""Added to the vocabulary, but not special: a text may hold them."""

SIZE = 320

LEARNED = [
    "user\n\nWhat is this?\n\nassistant\n\n\nIt is a cell.\n\nThe cell is stained.\n",
    "user\n  Where is the patient?\nassistant\n\n  There is the patient.\n\n\n",
    '{"name": "find", "arguments": {"what": "the cell"}}\n',
]

TEMPLATE = r"""
{%- macro seen(message) %}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' %}
                {{- '<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- else %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
{%- endmacro %}
{%- set spoken = messages[0].role == 'system' %}
{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if spoken %}
        {{- seen(messages[0]) + '\n\n' }}
    {%- endif %}
    {{- '# Tools\n\nYou may call one or more functions to assist with the user query.\n\n' }}
    {{- 'You are provided with function signatures within <tools></tools> XML tags:\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' + tool | tojson }}
    {%- endfor %}
    {{- '\n</tools>\n\nFor each function call, return a json object with function name and ' }}
    {{- 'arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n' }}
    {{- '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n' }}
{%- elif spoken %}
    {{- '<|im_start|>system\n' + seen(messages[0]) + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {%- if not loop.previtem or loop.previtem.role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' + seen(message) + '\n</tool_response>' }}
        {%- if not loop.nextitem or loop.nextitem.role != 'tool' %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- elif message.role != 'system' %}
        {{- '<|im_start|>' + message.role + '\n' + seen(message) }}
        {%- for call in message.tool_calls or [] %}
            {%- if message.content or not loop.first %}
                {{- '\n' }}
            {%- endif %}
            {{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments + '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""


TEMPLATE_35 = r"""
{%- macro seen(message) %}
    {%- if message.content is string %}
        {{- message.content }}
    {%- else %}
        {%- for part in message.content %}
            {{- '<|vision_start|><|image_pad|><|vision_end|>' if part.type == 'image' }}
            {{- part.text if part.type == 'text' }}
        {%- endfor %}
    {%- endif %}
{%- endmacro %}
{%- set asked = namespace(last=-1) %}
{%- for message in messages %}
    {%- set text = seen(message) | trim %}
    {%- set result = text.startswith('<tool_response>') and text.endswith('</tool_response>') %}
    {%- set asked.last = loop.index0 if message.role == 'user' and not result else asked.last %}
{%- endfor %}
{{- raise_exception('nobody asks') if asked.last < 0 }}
{%- set spoken = messages[0].role == 'system' %}
{%- if tools or spoken %}
    {{- '<|im_start|>system\n' }}
    {%- if tools %}
        {{- '# Tools\n\nYou have access to the following functions:\n\n<tools>' }}
        {%- for tool in tools %}
            {{- '\n' + tool | tojson }}
        {%- endfor %}
        {{- '\n</tools>\n\nIf you choose to call a function ONLY reply in the following format ' }}
        {{- 'with NO suffix:\n\n<tool_call>\n<function=example_function_name>\n' }}
        {{- '<parameter=example_parameter_1>\nvalue_1\n</parameter>\n' }}
        {{- '<parameter=example_parameter_2>\nThis is the value for the second parameter\n' }}
        {{- 'that can span\nmultiple lines\n</parameter>\n</function>\n</tool_call>\n\n' }}
        {{- '<IMPORTANT>\nReminder:\n- Function calls MUST follow the specified format: ' }}
        {{- 'an inner <function=...></function> block must be nested within ' }}
        {{- '<tool_call></tool_call> XML tags\n- Required parameters MUST be specified\n' }}
        {{- '- You may provide optional reasoning for your function call in natural language ' }}
        {{- 'BEFORE the function call, but NOT after\n- If there is no function call available, ' }}
        {{- 'answer the question like normal with your current knowledge and do not tell the ' }}
        {{- 'user about function calls\n</IMPORTANT>' }}
        {{- '\n\n' if spoken and seen(messages[0]) | trim }}
    {%- endif %}
    {{- (seen(messages[0]) | trim if spoken else '') + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- set said = seen(message) | trim %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user' if loop.previtem and loop.previtem.role != 'tool' }}
        {{- '\n<tool_response>\n' + said + '\n</tool_response>' }}
        {{- '<|im_end|>\n' if loop.last or loop.nextitem.role != 'tool' }}
    {%- elif message.role == 'user' %}
        {{- '<|im_start|>user\n' + said + '<|im_end|>\n' }}
    {%- elif message.role == 'assistant' %}
        {%- set parts = said.split('</think>') %}
        {%- set thought = parts[0].split('<think>')[-1] | trim if parts | length > 1 else '' %}
        {%- set answer = parts[-1].lstrip('\n') if parts | length > 1 else said %}
        {{- '<|im_start|>assistant\n' }}
        {{- '<think>\n' + thought + '\n</think>\n\n' if loop.index0 > asked.last }}
        {{- answer }}
        {%- for call in message.tool_calls or [] %}
            {{- '\n' if not loop.first }}
            {{- '\n\n' if loop.first and answer | trim }}
            {{- '<tool_call>\n<function=' + call.function.name + '>\n' }}
            {%- for name, value in call.function.arguments | items %}
                {%- set listed = value is sequence and value is not string %}
                {%- set shown = value | tojson if value is mapping or listed else value | string %}
                {{- '<parameter=' + name + '>\n' + shown + '\n</parameter>\n' }}
            {%- endfor %}
            {{- '</function>\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif not loop.first %}
        {{- raise_exception('a system turn is the first one') }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n<think>\n' }}
{%- endif %}
"""


def write(
    folder: Path,
    template: str | None = TEMPLATE,
    *,
    size: int = SIZE,
    learned: Sequence[str] = LEARNED,
) -> Path:
    """Write the files of the tokenizer into a folder; gives the folder."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        learned,
        trainers.BpeTrainer(
            vocab_size=size - len(SPECIAL) - len(ADDED),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    made.add_special_tokens([AddedToken(one, normalized=False, special=True) for one in SPECIAL])
    made.add_tokens([AddedToken(one, normalized=False, special=False) for one in ADDED])
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "Qwen2TokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": 1 << 20,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder
