"""Writes a model folder that a tokenizer and a simulated engine accept. Argument: the folder.

The vocabulary is the 256 bytes and a few markers, so that any text has tokens; nothing is trained.
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # type: ignore[import-not-found]

BEGIN, END = "<|begin|>", "<|end|>"
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def main() -> None:
    """Writes the files."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([BEGIN, END])
    tokenizer.save(str(folder / "tokenizer.json"))
    begin, end = tokenizer.token_to_id(BEGIN), tokenizer.token_to_id(END)
    files = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "bos_token_id": begin,
            "eos_token_id": end,
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
            "torch_dtype": "float32",
        },
        "generation_config.json": {"bos_token_id": begin, "eos_token_id": end},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": BEGIN,
            "eos_token": END,
            "chat_template": TEMPLATE,
            "model_max_length": 4096,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2))


if __name__ == "__main__":
    main()
