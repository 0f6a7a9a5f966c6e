"""The mistakes that only One token at a time knows; the words of some stand in mistakes.toml."""

from pathlib import Path

import numpy as np

from ...mistakes.mistake import Mistake, read_mistakes
from ...mistakes.weights import CAUSAL_ADDED, TRIANGLE, WINDOW
from . import decoding

MISTAKES = (
    *WINDOW,
    Mistake(
        "window_inverted",
        behaves_as_if="True means blocked",
        symptom="A token sees exactly what it should not.",
        hint="In this series True = may attend. What should stand on the diagonal?",
        then="True: each token sees itself. Turn your mask over with ~.",
        variants=({"near": lambda s: (s.back < 0) | (s.back >= s.window)},),
    ),
    Mistake(
        "groups_tiled",
        behaves_as_if="the heads of keys and values are dealt out in turn (tile), where each should serve neighbours",
        symptom="Right shape, and as good as any if it is trained so; with weights that were trained the other way, "
        "nonsense.",
        hint="Four heads of queries, two of keys. Which head of keys serves the second head of queries?",
        then="The first, together with the first head of queries: repeat each head of keys before the next one comes.",
        variants=({"serving": lambda s: np.arange(s.q.shape[-3]) % s.key.shape[-3]},),
    ),
    Mistake(
        "groups_by_their_number",
        behaves_as_if="head i, counted from 0, is served by head i // g, where a group has h // g heads",
        symptom="Right for g = sqrt(h), such as 4 and 2; elsewhere wrong heads, or an index that does not exist.",
        hint="Six heads of queries, two of keys: how many heads of queries share one?",
        then="h // g of them. Head i of the queries belongs to group i // (h // g).",
        variants=({"serving": lambda s: np.arange(s.q.shape[-3]) // s.key.shape[-3]},),
    ),
    Mistake(
        "groups_first_only",
        behaves_as_if="all heads of queries share the first head of keys and values",
        symptom="The other heads of keys and values are computed, kept, and never looked at.",
        hint="Change the last head of the keys. Does your output move?",
        then="It should. Each head of keys serves h // g neighbours: np.repeat along the axis of heads.",
        variants=({"serving": lambda s: np.zeros(s.q.shape[-3], dtype=int)},),
    ),
    Mistake(
        "groups_differ",
        behaves_as_if="keys are repeated side by side and values are dealt out in turn, or the other way round",
        symptom="Right shape. A head compares with one group's keys and averages another group's values.",
        hint="Head 1 of four uses which head of keys? And which head of values?",
        then="The same one: spread keys and values over the heads of queries in the same way.",
        variants=(
            {"serving_values": decoding.dealt_out},
            {"serving": decoding.dealt_out, "serving_values": decoding.side_by_side},
        ),
    ),
    Mistake(
        "heads_not_repeated",
        behaves_as_if="keys or values keep their g heads, where each head of queries needs one of its own",
        symptom="An error, unless there are as many heads of keys as of queries.",
        hint="Print the shapes of query, key and value. How many heads has each?",
        then="h, g and g: repeat each head of keys and of values h // g times, along axis -3.",
        variants=(decoding.only_if(lambda s, h, g: g == h), decoding.only_if(lambda s, h, g: g in (1, h))),
        raises=True,
    ),
    Mistake(
        "repeated_by_another_number",
        behaves_as_if="each head of keys and values is repeated g times, h times or always twice, where it must be "
        "h // g times",
        symptom="Right where g is h // g, as with 4 heads and 2, or where g is 1; elsewhere the heads do not match.",
        hint="Six heads of queries, two of keys: how often must each head of keys stand there?",
        then="Three times, h // g: then g heads have become h.",
        variants=tuple(
            decoding.only_if(fits)
            for fits in (lambda s, h, g: g == 1 or g * g == h, lambda s, h, g: g == 1, lambda s, h, g: h == 2 * g)
        ),
        raises=True,
    ),
    Mistake(
        "heads_from_the_front",
        behaves_as_if="the axis of the heads is counted from the front: axis 1 is that of the heads behind a batch, "
        "and that of the tokens without one; axis 0 has the heads without a batch, and the texts with one",
        symptom="Right with a batch or without, and an error in the other case.",
        hint="(h, n_q, d_k) and (b, h, n_q, d_k): counted from the end, which axis holds the heads in both?",
        then="The third from the end: query.shape[-3], and np.repeat(key, h // g, axis=-3).",
        variants=(
            decoding.only_if(lambda s, h, g: g in (1, h) or s.q.ndim == 4),
            decoding.only_if(lambda s, h, g: s.q.ndim == 4),
            decoding.only_if(lambda s, h, g: g == h or s.q.ndim == 3),
        ),
        raises=True,
    ),
    Mistake(
        "attention_not_called",
        behaves_as_if="the function that is handed over is never called",
        symptom="Right as long as it is the usual one. In 'it speaks' another is handed over, and nobody would notice.",
        hint="Which of your arguments does the output not depend on?",
        then="It should depend on that function: let it make scores, weights and output.",
        variants=({"q": lambda s: s.asked},),
    ),
    CAUSAL_ADDED,
    *TRIANGLE,
    Mistake(
        "chunk_upper_left",
        behaves_as_if="the first new token stands at the first key (upper left): it sees the oldest token and nothing "
        "else",
        symptom="All at once it is right. Behind other tokens a new one does not even see itself.",
        hint="One query and 5 keys: which keys may it see?",
        then="All five. The mask lines up at the lower right: the last query sees every key.",
        variants=(
            {"mask": lambda s: np.tri(*s.sizes, dtype=bool)},
            {"mask": lambda s: np.tri(*s.sizes, dtype=bool) if s.sizes[0] > 1 else np.ones(s.sizes, dtype=bool)},
        ),
    ),
    Mistake(
        "chunk_not_masked",
        behaves_as_if="within a chunk a token sees what comes after it",
        symptom="One token at a time this is right, and so it hides from that test: only chunks show it, perhaps only "
        "behind other tokens.",
        hint="Which keys may the first token of a chunk of 4 not see?",
        then="The three behind it. The mask has a row for each new token and a column for each key, old ones too.",
        variants=(
            {"mask": lambda s: np.ones(s.sizes, dtype=bool)},
            {"mask": lambda s: np.ones(s.sizes, dtype=bool) if np.ptp(s.sizes) else np.tri(*s.sizes, dtype=bool)},
            {"mask": lambda s: np.tri(*s.sizes, k=s.sizes[1] - s.sizes[0] + 1, dtype=bool)},
        ),
    ),
    Mistake(
        "cache_overwritten",
        behaves_as_if="the new keys and values take the place of the old ones",
        symptom="It forgets all but the last chunk.",
        hint="How many keys should your cache hold after 4 tokens?",
        then="Four: put the new rows below the old ones, np.concatenate([old, new], axis=-2).",
        variants=({"cached": lambda s: s.new},),
    ),
    Mistake(
        "past_not_attended",
        behaves_as_if="each chunk meets its own keys and values only: those of earlier chunks are not returned, or "
        "not attended to",
        symptom="The first chunk is right; then every token forgets what stood before its own chunk.",
        hint="Which keys go into your attention, and which do you return: the new ones, or old and new together?",
        then="Old and new together, in both: attend with what you return.",
        variants=({"seen": lambda s: s.new},),
    ),
    Mistake(
        "values_not_kept",
        behaves_as_if="keys are kept and the old values are not: zeros stand in their place",
        symptom="The weights are right, and most of what they fetch is 0.",
        hint="Each key needs its own value. How many rows have your values after 4 tokens?",
        then="Four: np.concatenate([past[1], value], axis=-2), as for the keys.",
        variants=({"seen": decoding.values_forgotten},),
    ),
    Mistake(
        "new_keys_in_front",
        behaves_as_if="the new keys and values are put in front of the old ones",
        symptom="One token at a time this is right: a sum over keys knows no order. In a chunk the mask hides the "
        "wrong ones.",
        hint="The mask counts keys from the oldest. Which end do the new ones belong to?",
        then="The end: the old rows come first in np.concatenate, the new ones last.",
        variants=({"seen": lambda s: decoding.append_tokens(s.new, s.past)},),
    ),
    Mistake(
        "cache_exchanged",
        behaves_as_if="values are returned in the place of the keys, and keys in the place of the values",
        symptom="The first chunk is right. Where d_k = d_v nothing complains, and each later chunk compares with "
        "values.",
        hint="In which order does `past` hold the two? And what do you return?",
        then="Keys first, in both: return output, (keys, values).",
        variants=({"cached": lambda s: s.seen[::-1]},),
    ),
    Mistake(
        "last_output_only",
        behaves_as_if="only the output of the last new token comes back",
        symptom="One token at a time that is all there is. A prompt needs every row, because the next layer reads "
        "them.",
        hint="How many rows has your output for a chunk of 3 tokens?",
        then="Three: one for each new token.",
        variants=({"returned": lambda s: s.output[..., -1:, :]},),
    ),
    Mistake(
        "one_too_many_accepted",
        behaves_as_if="the first token of the draft that disagrees is accepted, too",
        symptom="The text goes on with a token that the model would not have written, and with what it says after "
        "that one.",
        hint="The draft's third token is not the model's. How many tokens of the draft does the text get?",
        then="Two. After them comes the token that the model chose there, and nothing behind it.",
        variants=tuple({"agreed": lambda s: min(s.agreeing + 1, len(s.draft)), **new} for new in ({}, decoding.CHOSEN)),
    ),
    Mistake(
        "draft_in_place_of_the_models",
        behaves_as_if="where the two disagree, the draft's token is taken in place of the model's",
        symptom="The text is what the draft says, and after an unlucky guess no longer what the model writes.",
        hint="Where draft and model disagree, who is right?",
        then="The model. The draft was a guess, and its token there goes.",
        variants=(
            {"new": lambda s: [*s.draft, s.chosen[-1]][: s.agreed + 1]},
            {"new": lambda s: s.draft[: s.agreed + 1]},
        ),
    ),
    Mistake(
        "agreements_counted",
        behaves_as_if="agreements behind the first disagreement count, too",
        symptom="What agrees behind a wrong token was read in another text: that token stands before it.",
        hint="Token 0 of the draft is wrong and token 1 agrees. May token 1 stay?",
        then="No: stop at the first that disagrees. Count the beginning, not all that are equal.",
        variants=(
            *({"agreed": decoding.all_agreements, **new} for new in ({}, decoding.CHOSEN)),
            *({"agreed": decoding.last_agreement, **new} for new in ({}, decoding.CHOSEN)),
        ),
    ),
    Mistake(
        "another_row_of_logits",
        behaves_as_if="the model's own token behind what was accepted is read from another row of the logits",
        symptom="Row i says what the model writes behind i tokens of the draft. Another row answers another question.",
        hint="Nothing of the draft agrees. In which row stands the token that the model writes then?",
        then="In row 0. Behind n tokens that agree, the model's own stands in row n.",
        variants=(
            {"new": lambda s: [*s.draft[: s.agreed], s.chosen[-1]]},
            *({"new": decoding.own_from(by)} for by in (1, -1)),
            {"new": lambda s: [*s.draft[: s.agreed], s.chosen[s.agreed - 1]]},
            {"new": lambda s: [*s.draft[: s.agreed], s.chosen[s.agreed + 1]]},
        ),
    ),
    Mistake(
        "rejected_row_kept",
        behaves_as_if="the cache keeps one row too many, that of the first rejected token",
        symptom="Every token from then on sees a word that is not in the text.",
        hint="Does the model's own token already have a row in the cache?",
        then="No: it was chosen, not read. It gets its row in the next pass.",
        variants=({"end": lambda s: min(s.agreed - len(s.draft) + 1, 0) or None},),
    ),
    Mistake(
        "cache_cut_too_far",
        behaves_as_if="rows of accepted tokens are cut off, too",
        symptom="The text goes on, and the model has no keys for words that are in it.",
        hint="The pass has read the newest token and the accepted ones. Need they be read again?",
        then="No: cut only as many rows as tokens were rejected, m - agreed.",
        variants=(
            {"end": lambda s: -len(s.draft) or None},
            {"end": lambda s: s.agreed - len(s.draft) - 1},
            {"end": lambda s: -len(s.draft) - 1},
        ),
    ),
    *read_mistakes(
        Path(__file__).with_name("mistakes.toml"),
        models_token_dropped=({"new": lambda s: s.chosen[: s.agreed]},),
        cache_not_cut=({"end": lambda s: None},),
        cut_along_another_axis=({"kept_of": lambda s: lambda x: x[..., : x.shape[1] + (s.end or 0)]},),
        own_token_after_all_missing=({"new": lambda s: s.chosen[: min(s.agreed + 1, len(s.draft))]},),
        text_before_forgotten=({"end": lambda s: s.agreed}, {"end": lambda s: s.agreed + 1}),
        cache_emptied=({"end": lambda s: 0},),
        cut_by_minus_zero=({"end": lambda s: s.agreed - len(s.draft)},),
        greedy_under_temperature=tuple(
            {"kept": lambda s: s.p == s.p.max(), **other} for other in ({}, decoding.FROM_P)
        ),
        redrawn_from_p=(decoding.FROM_P,),
        ratio_turned_over=({"kept": lambda s: np.minimum(s.q / s.p, 1)},),
        ratio_above_one=({"kept": lambda s: s.p / s.q}, {"kept": lambda s: np.maximum(s.p / s.q, 1)}),
        kept_or_rejected=tuple({"kept": lambda s: s.p >= s.q, **other} for other in ({}, decoding.FROM_P)),
        difference_not_clipped=({"other": lambda s: np.copysign(np.inf, s.p - s.q)},),
        not_divided_by_q=({"kept": lambda s: np.minimum(s.p, s.q)},),
        second_row_not_normalised=({"other": lambda s: s.lacks}, {"other": lambda s: s.lacks / 2 / s.lacks.sum()}),
        surplus_drawn=(
            {"lacks": lambda s: np.maximum(s.q - s.p, 0)},
            {"lacks": lambda s: np.abs(s.p - s.q)},
            {"other": lambda s: s.p - s.q},
            {"other": lambda s: (1 - s.kept) * s.p},
            {"lacks": lambda s: (1 - s.kept) * s.p},
            {"lacks": lambda s: 1 - s.kept},
            {"lacks": lambda s: np.exp(s.p - s.q)},
            {"lacks": lambda s: np.exp(np.maximum(s.p - s.q, 0))},
        ),
        too_little_kept=tuple(
            {"kept": lambda s, share=share: share * np.minimum(s.p / s.q, 1), **other}
            for share in (0, 0.5)
            for other in ({}, decoding.FROM_P, decoding.FROM_THE_REST)
        )
        + tuple(
            {"kept": lambda s: s.p / (s.p + s.q), **other} for other in ({}, decoding.FROM_P, decoding.FROM_THE_REST)
        ),
        mask_changed=({"allowed": lambda s: np.repeat(s.mask, 2, axis=-3)},),
        p_in_row_0=({"kept": lambda s: s.p}, {"kept": lambda s: s.q}),
        draft_read_one_row_late=decoding.ONE_ROW_LATE,
        whole_pass_kept=({"agreed": lambda s: len(s.draft)}, {"new": lambda s: s.chosen}),
        all_or_nothing=tuple(
            {"agreed": lambda s: len(s.draft) if s.agreeing == len(s.draft) else 0, **new}
            for new in ({}, decoding.CHOSEN)
        ),
        lack_not_measured=(
            {"lacks": lambda s: s.p * (s.p > s.q)},
            {"lacks": lambda s: (s.p > s.q) * 1.0},
        ),
        groups_averaged=(
            {"q": lambda s: np.repeat(decoding.mean_queries(s), s.asked.shape[-3] // s.key.shape[-3], axis=-3)},
            {"q": decoding.mean_queries, "serving": lambda s: np.arange(s.key.shape[-3])},
            {"k": lambda s: s.key.mean(axis=-3, keepdims=True), "v": lambda s: s.value.mean(axis=-3, keepdims=True)},
        ),
        groups_beside=(
            *({"serving": lambda s, by=by: np.roll(decoding.side_by_side(s), by)} for by in (1, -1)),
            *({"serving": lambda s, by=by: (decoding.side_by_side(s) + by) % s.key.shape[-3]} for by in (1, -1)),
        ),
    ),
)
