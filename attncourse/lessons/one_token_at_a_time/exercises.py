"""The exercises of One token at a time, and the inputs on which they are tried."""

from ...engine.exercise import MAP_AXES, OUTPUT_AXES, Design, Function, Kept, step_options
from ...writer.grammar import BEGINNING_SAYS, judge_beginning
from . import decoding

EXERCISES = (
    decoding.InChunks(
        "decode_step",
        "decode_step(query, key, value, past, grouped) -> (output, (keys, values)). query (h, n, d_k), key (g, n, "
        "d_k) and value (g, n, d_v) are those of the new tokens, past = (keys, values) those of the tokens before, "
        "with 0 rows at the start. output (h, n, d_v) equals what grouped(query, key, value, mask) gives of all "
        "tokens at once under a causal mask.",
        (
            "Put the new keys and values behind the old ones, and attend to all. The `grouped` handed to you is "
            "like my_grouped: give it the g heads as they are.",
            "The tokens are the axis before the last one: np.concatenate([old, new], axis=-2).",
            "The mask is lower right: np.tri(n_q, n_k, k=n_k - n_q, dtype=bool). Return all keys and values.",
        ),
        probes=decoding.decoding_probes(),
        given=lambda query, key, value, past, grouped: {
            "asked": query,
            "new": (key, value),
            "past": past,
            "attention": grouped,
        },
        result=lambda s: s.returned,
        axes=OUTPUT_AXES,
        steps=decoding.Decoding,
        kept=Kept("decode_step", "attncourse.smollm.decode_step"),
    ),
    Function(
        "window_mask",
        "window_mask(n_q, n_k, window) -> (n_q, n_k) of bool, True = may attend: the queries are the last n_q of n_k "
        "tokens, and each sees itself and the window - 1 tokens before it.",
        (
            "`back`: positions of queries, a column, minus those of keys, a row. The first query stands at n_k - n_q.",
            "Two conditions. With a window of 1 a token sees itself alone: which `back` is that? And with 2?",
            "back >= 0, and back < window. Join the two with &, each in brackets.",
        ),
        probes=decoding.window_probes(),
        **step_options("near", "n_q n_k window", of=decoding.Window, axes=MAP_AXES, stage="mask"),
    ),
    Design(
        "out_of_reach",
        "the beginning of a sentence, up to its main verb, in which two layers with a window of 3 tokens cannot know "
        "whether the verb is singular or plural. One string; words of the grammar.",
        (
            "One layer with a window of 3 looks 2 places back. How far do two layers look?",
            "The subject must stand at least five places back from the last word: four words or more between the two.",
            "In “the cats that see the old dog” the verb “see” gives it away. Let somebody else do the seeing.",
        ),
        judge=judge_beginning,
        names=tuple(BEGINNING_SAYS),
    ),
    Function(
        "grouped_attention",
        "grouped_attention(query, key, value, attn_mask=None, attention=...) -> (..., h, n_q, d_v): query (..., h, "
        "n_q, d_k), key (..., g, n_k, d_k), value (..., g, n_k, d_v), g divides h; the first h / g heads of queries "
        "use the first head of keys and values, the next h / g the second. attention(query, key, value, attn_mask) "
        "does the rest.",
        (
            "Give every head of queries a head of keys and values; then it is plain attention.",
            "Counted from 0, head i uses number i // (h // g).",
            "np.repeat(key, h // g, axis=-3) repeats each head side by side. Hand the mask on to `attention`.",
        ),
        probes=decoding.grouped_probes(),
        **step_options("output", "asked key value mask attention", of=decoding.Grouped, axes=OUTPUT_AXES),
        kept=Kept("grouped_attention", "attncourse.smollm.grouped_attention"),
    ),
    Function(
        "accept_draft",
        "accept_draft(logits, draft, past) -> (new, past). logits (m + 1, words): what comes after the newest token, "
        "and after each of the m tokens of the draft, a list. past: (keys, values) of each layer, (g, n, d); the last "
        "m rows are the draft's. new: the longest beginning of the draft that the model would have written, greedily, "
        "and the model's own token after it. The new past is without the rows of the draft's other tokens.",
        (
            "logits.argmax(axis=-1) is what the model would have written, one token more than the draft has.",
            "Go along the draft as long as it is what the model chose, and count.",
            "With `agreed` tokens accepted, new is chosen[:agreed + 1], and m - agreed rows go from the end.",
        ),
        probes=decoding.checking_probes(),
        **step_options("accepted", "logits draft past", of=decoding.Checking),
        judge=decoding.judge_accepted,
    ),
    Function(
        "draft_chances",
        "draft_chances(p, q) -> (2, words). A word was drafted with the probabilities q, (words,); the model has p, "
        "not equal to q. Row 0: how likely each word is kept, if drafted. Row 1: the probabilities of what is drawn "
        "if it is not. What is written has the probabilities p, and as much as possible is kept.",
        (
            "Which words does the draft say too often? Row 0 keeps these in part. Row 1 has only those that lack.",
            "A word that the draft says twice as often as the model is kept in half of the cases. Which words lack?",
            "Row 0 is np.minimum(p / q, 1), and row 1 is np.maximum(p - q, 0) divided by its sum.",
        ),
        probes=decoding.chance_probes(),
        **step_options("chances", "p q", of=decoding.Chances),
    ),
)
