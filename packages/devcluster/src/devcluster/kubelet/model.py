"""The folder of a model without weights, from which the real runtime takes a tokenizer and a few numbers.

Any text has tokens: one for each byte. The simulated engine answers with random tokens from 1000 on. They are
pairs of words here, so that people can read an answer, and do not take it for one of a model.
"""

import json
from pathlib import Path

_WORDS = Path(__file__).with_name("words.txt")
"""Two lines: adjectives and nouns."""
_FIRST_ANSWER_TOKEN = 1000
_MEAN_ANSWER_TOKENS = 64
"""One of so many tokens ends an answer."""
_BEGIN, _END = "<|begin|>", "<|end|>"
_TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
_CONTEXT = 32768
_SPACE = "\u0120"  # how byte-level tokens write a space


def write(folder: Path) -> None:
    """Write the files."""
    vocabulary = _vocabulary()
    begin = vocabulary[_BEGIN]
    ends = [vocabulary[_END], *range(_FIRST_ANSWER_TOKEN, len(vocabulary), _MEAN_ANSWER_TOKENS)]
    files: dict[str, object] = {
        "tokenizer.json": _tokenizer(vocabulary),
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "bos_token_id": begin,
            "eos_token_id": ends,
            "vocab_size": len(vocabulary),
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "max_position_embeddings": _CONTEXT,
            "torch_dtype": "float32",
        },
        "generation_config.json": {"bos_token_id": begin, "eos_token_id": ends},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": _BEGIN,
            "eos_token": _END,
            "chat_template": _TEMPLATE,
            "model_max_length": _CONTEXT,
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        partial = folder / f".{name}"
        partial.write_text(json.dumps(content), encoding="utf-8")
        partial.rename(folder / name)


def answer_words() -> list[str]:
    """The pieces of which answers consist."""
    adjectives, nouns = (line.split() for line in _WORDS.read_text(encoding="utf-8").splitlines())
    return [f" {adjective} {noun}" for adjective in adjectives for noun in nouns]


def _vocabulary() -> dict[str, int]:
    pieces = [*_byte_letters(), _BEGIN, _END]
    pieces += [f"<|unused-{number}|>" for number in range(len(pieces), _FIRST_ANSWER_TOKEN)]
    pieces += [words.replace(" ", _SPACE) for words in answer_words()]
    return {piece: number for number, piece in enumerate(pieces)}


def _byte_letters() -> list[str]:
    """The letter for each byte of byte-level BPE: itself if printable, else one from U+0100 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def _tokenizer(vocabulary: dict[str, int]) -> dict[str, object]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    special = [{"id": vocabulary[name], "content": name, **flags, "special": True} for name in (_BEGIN, _END)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    unset = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
    model: dict[str, object] = {"type": "BPE", **dict.fromkeys(unset), "fuse_unk": False}
    model |= {"byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": []}
    return {
        "version": "1.0",
        **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor")),
        "added_tokens": special,
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": model,
    }
