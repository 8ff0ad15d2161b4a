"""Imported before everything else here, so that a missing LlamaIndex is named with its remedy."""

from skillsight_core._errors import require

require("llama_index.core", extra="llamaindex", purpose="the LlamaIndex integration")
