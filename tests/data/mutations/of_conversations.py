"""Refusals of conversations in each form, and of FHIR."""

from tests.data.mutations.refusal import of

BROKEN = "test_each_broken_rule_has_its_reason"
NONE = "test_forms_that_are_none"
PARTS = "test_parts_that_cannot_be_kept"

RULES = of(
    "data/chat/rules.py",
    "data/chat/test_rules.py",
    ("no turn at all", "no messages", BROKEN),
    ("a role that there is not", "unknown role", BROKEN),
    ("nobody to learn from", "no assistant turn", BROKEN),
    ("a turn that says nothing, or only zero-width characters", "empty ", BROKEN),
    ("the user calls a tool", "tool call of another role", BROKEN),
    ("a call without an id", "tool call without an id", BROKEN),
    ("two calls of a turn with one id", "two tool calls with one id", BROKEN),
    (
        "a result that answers no call, or one that is answered",
        "tool result without a call",
        BROKEN,
    ),
    ("a turn that is no result answers a call", "tool call id of another role", BROKEN),
    ("somebody speaks before a call is answered", "tool call without a result", BROKEN),
)

SAMPLES = of(
    "data/sample.py",
    "data/test_kinds.py",
    (
        "a row with a licence that is no SPDX expression",
        "license is no SPDX expression",
        "test_a_licence_of_a_row_is_spdx",
    ),
)

OPENAI = of(
    "data/chat/openai.py",
    "data/chat/test_openai.py",
    (
        "messages that are a number, null or an object",
        "messages are not a list",
        "test_messages_that_are_no_list",
    ),
    ("a message that is a text", "a message is not an object", NONE),
    ("a role that there is not, or is a list", "unknown role", NONE),
    ("a refusal or sound that would be lost", "a refusal or sound beside the content", NONE),
    (
        "a result with null content",
        "tool result without content",
        "test_null_content_is_well_beside_a_call_and_nothing_without",
    ),
    ("a weight of 0.5", "weight is neither 0 nor 1", NONE),
    ("calls that are an object", "tool calls are not a list", NONE),
    ("a call that is a text", "tool call is not an object", NONE),
    ("a call of a custom tool", "tool call of another type than function", NONE),
    ("a name or an id that is a number", " is not text", NONE),
)

CONTENTS = of(
    "data/chat/contents.py",
    "data/chat/test_openai.py",
    ("content that is a number", "content is neither text nor a list of parts", NONE),
    ("reasoning that is an object", "reasoning is not text", PARTS),
    ("reasoning, and the declaration refuses it", "reasoning in a turn", NONE),
    ("a part that is a number", "a part is neither text nor an object", PARTS),
    ("a part that is a sound or a file", "a part of an unknown type", PARTS),
    ("an image at an address", "image outside the row", PARTS),
    (
        "an image, and none are declared",
        "the dataset declares nothing about images",
        "test_an_image_where_the_declaration_expects_none",
    ),
    ("an image that is no base64", "image is not base64", PARTS),
    ("a text part with null", "a text part without text", PARTS),
)

CALLS = of(
    "data/chat/calls.py",
    "data/chat/test_openai.py",
    ("a call that is a list", "tool call is not an object", NONE),
    ("a call of nothing", "tool call without a name", NONE),
    (
        "arguments that are cut, a list, or have NaN",
        "tool call arguments are not a JSON object",
        "test_arguments_that_are_no_object",
    ),
    (
        "a call between tags that is no JSON",
        "tool call is not JSON",
        "data/chat/test_sharegpt.py::test_forms_that_are_none",
    ),
    ("tools that are no JSON", "tools are not JSON", "test_tools_that_are_none"),
    ("tools that are an object", "tools are not a list", "test_tools_that_are_none"),
    ("a tool that is a text", "a tool is not an object", "test_tools_that_are_none"),
    ("a tool of another type", "a tool is not a function", "test_tools_that_are_none"),
    ("a tool that has no name", "a tool without a name", "test_tools_that_are_none"),
)

SHAREGPT = (
    *of(
        "data/chat/sharegpt.py",
        "data/chat/test_sharegpt.py",
        (
            "turns that are an object",
            "turns are not a list",
            "test_turns_that_are_no_list_or_no_objects",
        ),
        (
            "a turn that is a text",
            "a turn is not an object",
            "test_turns_that_are_no_list_or_no_objects",
        ),
        ("a speaker that there is not", "unknown role", NONE),
        ("a result with null", "tool result without content", NONE),
        ("a turn whose value is a number", "a turn's value is not text", NONE),
        (
            "images or sound that would be lost",
            "images, video or sound beside the turns",
            "test_images_go_to_their_places",
        ),
        (
            "fewer images than places",
            "more places for images than images",
            "test_images_go_to_their_places",
        ),
        (
            "more images than places",
            "more images than places for them",
            "test_images_go_to_their_places",
        ),
    ),
    *of(
        "data/chat/tagged.py",
        "data/chat/test_sharegpt.py",
        ("text between results", "text beside a tool response", "test_tags_that_cannot_be_read"),
        (
            "a tag that does not end",
            "a tool call without its other tag",
            "test_tags_that_cannot_be_read",
        ),
    ),
    *of(
        "data/chat/turns.py",
        "data/chat/test_sharegpt.py",
        ("a result, and nobody called", "tool result without a call", NONE),
    ),
    *of(
        "data/chat/dialogue.py",
        "data/chat/test_dialogue.py",
        (
            "a speaker that the declaration does not name",
            "unknown speaker",
            "test_transcripts_that_are_none",
        ),
        (
            "text that nobody says",
            "text before the first speaker",
            "test_transcripts_that_are_none",
        ),
    ),
)

FHIR = (
    *of(
        "data/fhir/__init__.py",
        "data/fhir/test_fhir.py",
        ("a bundle of nothing", "empty FHIR bundle", "test_what_gives_no_document"),
        (
            "a bundle of two patients",
            "several patients in one FHIR bundle",
            "test_what_gives_no_document",
        ),
    ),
    *of(
        "data/fhir/validation.py",
        "data/fhir/test_fhir.py",
        (
            "a resource with a wrong value, or without its type",
            "not valid FHIR",
            "test_what_gives_no_document",
        ),
        (
            "a resource of R4 that R4B has dropped",
            "a FHIR resource that R4B does not have",
            "test_what_gives_no_document",
        ),
    ),
)

REFUSALS = (*RULES, *SAMPLES, *OPENAI, *CONTENTS, *CALLS, *SHAREGPT, *FHIR)
