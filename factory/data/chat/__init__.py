"""Conversations in the forms in which others write them, as messages.

`openai` reads messages with roles and tool calls, `sharegpt` turns with `from` and `value`,
`dialogue` transcripts with the speaker before each line. Which conversations are refused, whatever
their form, is in `rules`. Each converter is pure: a record in, messages out, `BadRow` with a
constant reason for what cannot be one. Nothing of a record is left out in silence.
"""

from factory.data.chat.calls import tools as tools
from factory.data.chat.turns import merged as merged
