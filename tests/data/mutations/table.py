"""All refusals with their mutations, by what they are of."""

from collections.abc import Mapping

from tests.data.mutations import (
    of_conversations,
    of_declarations,
    of_images,
    of_reading,
    of_sources,
    of_steps,
    of_streams,
)
from tests.data.mutations.refusal import Refusal

BY_CHAPTER: Mapping[str, tuple[Refusal, ...]] = {
    "Declarations": of_declarations.REFUSALS,
    "Sources, mirrors and deliveries": of_sources.REFUSALS,
    "Files and rows": of_reading.REFUSALS,
    "Images": of_images.REFUSALS,
    "Conversations and FHIR": of_conversations.REFUSALS,
    "Steps, versions and runs": of_steps.REFUSALS,
    "Streams of runs": of_streams.REFUSALS,
}

REFUSALS = tuple(one for chapter in BY_CHAPTER.values() for one in chapter)
