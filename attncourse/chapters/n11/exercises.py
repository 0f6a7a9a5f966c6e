"""Decoding: its exercises, questions, and what only they need."""

import numpy as np

from ...engine.exercise import MAP_AXES, OUTPUT_AXES, Design, Function, Kept, asked
from ...engine.questions import Question
from ...mistakes.mistake import Mistake
from ...mistakes.weights import CAUSAL_ADDED, WINDOW
from ...writer.grammar import BEGINNING_SAYS, judge_beginning
from . import decoding

OWN = (
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
        variants=(
            decoding.only_if(lambda h, g: g == h),
            decoding.only_if(lambda h, g: g in (1, h)),
        ),
        raises=True,
    ),
    Mistake(
        "attention_not_called",
        behaves_as_if="the `attention` that is handed over is never called",
        symptom="Right as long as it is the usual one. In 'it speaks' another is handed over, and nobody would notice.",
        hint="Which of your arguments does the output not depend on?",
        then="It should depend on `attention`: let it make scores, weights and output.",
        variants=({"q": lambda s: s.asked},),
    ),
    CAUSAL_ADDED,
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
        "chunk_without_itself",
        behaves_as_if="a new token sees the tokens before it, and not itself",
        symptom="The first token of a text then sees nothing at all.",
        hint="One query and 5 keys, of which the last is its own: which keys may it see?",
        then="All five. The last query sees every key, the one before it all but one.",
        variants=({"mask": lambda s: np.tri(*s.sizes, k=s.sizes[1] - s.sizes[0] - 1, dtype=bool)},),
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
        variants=({"seen": lambda s: decoding.joined(s.new, s.past)},),
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
        behaves_as_if="all agreements are counted, those behind the first disagreement, too",
        symptom="What agrees behind a wrong token was read in another text: that token stands before it.",
        hint="Token 0 of the draft is wrong and token 1 agrees. May token 1 stay?",
        then="No: stop at the first that disagrees. Count the beginning, not all that are equal.",
        variants=tuple({"agreed": decoding.all_agreements, **new} for new in ({}, decoding.CHOSEN)),
    ),
    Mistake(
        "another_row_of_logits",
        behaves_as_if="the model's own token behind what was accepted is read from another row of the logits",
        symptom="Row i says what the model writes behind i tokens of the draft. Another row answers another question.",
        hint="Nothing of the draft agrees. In which row stands the token that the model writes then?",
        then="In row 0. Behind n tokens that agree, the model's own stands in row n.",
        variants=({"new": lambda s: [*s.draft[: s.agreed], s.chosen[-1]]},),
    ),
    Mistake(
        "models_token_dropped",
        behaves_as_if="the model's own token behind what was accepted is left out",
        symptom="Where no token agrees, nothing new comes back, and the text stands still.",
        hint="Nothing agrees: what has the pass told you all the same?",
        then="The next token, by row 0 of the logits. Each pass writes one more than it accepts: chosen[:agreed + 1].",
        variants=({"new": lambda s: s.chosen[: s.agreed]},),
    ),
    Mistake(
        "cache_not_cut",
        behaves_as_if="the cache is not cut: it still holds the rejected tokens",
        symptom="The next token attends to tokens that are not in the text, and its own position is too late.",
        hint="Two of four tokens are accepted. How many rows of the cache belong to no token of the text?",
        then="Two, the last ones: keep the first n - (m - agreed) rows of keys and values, in each layer.",
        variants=({"end": lambda s: None},),
    ),
    Mistake(
        "cut_by_minus_zero",
        behaves_as_if="the cache is emptied where the whole draft agrees: x[:-0] has no rows",
        symptom="It happens at the best draft of all, and then the model has forgotten the text.",
        hint="Nothing is to be cut. What is x[:-0]?",
        then="x[:0], which is empty. Count from the front how many rows stay, and cut there.",
        variants=({"end": lambda s: s.agreed - len(s.draft)},),
    ),
    Mistake(
        "cache_cut_one_short",
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
    Mistake(
        "verb_not_due",
        behaves_as_if="the main verb is not due after its last word",
        symptom="Put a verb and a period after it: `grammatical` must accept one number and reject the other.",
        hint="Take a sentence that is right, and stop before its main verb.",
        then="Then the next word due is that verb, and its number is that of the subject.",
    ),
    Mistake(
        "no_sentence",
        behaves_as_if="no sentence of this grammar begins like that",
        symptom="`grammatical` rejects it with any verb and a period after it.",
        hint="Compare it with the four lines of rules in section 1, word by word.",
        then="Find the first word that no rule allows there, and change that one.",
    ),
    Mistake(
        "verb_after_that_unfit",
        behaves_as_if="the verb after “that” does not fit",
        symptom="`grammatical` rejects the sentence, whichever main verb you put after it.",
        hint="Who does it? Look at that noun, then at the lists of verbs in section 1.",
        then="One who does it takes a verb with s, several take one without. And it must be a verb with an object.",
    ),
    Mistake(
        "subject_in_reach",
        behaves_as_if="the subject is within reach",
        symptom="Each layer carries what it finds two places further, so two layers reach four places back.",
        hint="Count from your last word back to the subject. Which words can stand between?",
        then="Lengthen the part between: after “that” there is room for an article, an adjective, a noun and a verb.",
    ),
    Mistake(
        "told_by_another_verb",
        behaves_as_if="another verb in reach tells the number",
        symptom="In “the cats that see the old dog” the verb after “that” agrees with the subject, too.",
        hint="Who does something after “that”: the subject, or somebody else?",
        then="Let somebody else: then the verb after “that” agrees with that noun, and not with the subject.",
    ),
)


EXERCISES = (
    Function(
        "window_mask",
        "window_mask(n_q, n_k, window) -> (n_q, n_k) of bool, True = may attend: the queries are the last n_q of n_k "
        "tokens, and each sees itself and the window - 1 tokens before it.",
        (
            "Give each query its place in the sequence: the last one is the last token.",
            "How far does key j lie behind query i? The places of the queries as a column, minus those of the keys.",
            "back = np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k)."
            " Join the two conditions with &, each in brackets.",
        ),
        probes=decoding.window_probes(),
        **asked("near", "n_q n_k window", of=decoding.Window, axes=MAP_AXES, stage="mask"),
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
        **asked("output", "asked key value mask attention", of=decoding.Grouped, axes=OUTPUT_AXES),
        kept=Kept("grouped_attention", "attncourse.smollm.grouped_attention"),
    ),
    decoding.InChunks(
        "decode_step",
        "decode_step(query, key, value, past, attention) -> (output, (keys, values)). query (h, n, d_k), key (g, n, "
        "d_k) and value (g, n, d_v) are those of the new tokens, past = (keys, values) those of the tokens before, "
        "with 0 rows at the start. output (h, n, d_v) equals what attention(query, key, value, mask) gives of all "
        "tokens at once under a causal mask.",
        (
            "Put the new keys and values behind the old ones, and attend to all. The `attention` handed to you is that "
            "of my_grouped: give it the g heads as they are.",
            "The tokens are the axis before the last one: np.concatenate([old, new], axis=-2).",
            "The mask is lower right: np.tri(n_q, n_k, k=n_k - n_q, dtype=bool). Return all keys and values.",
        ),
        probes=decoding.decoding_probes(),
        given=lambda query, key, value, past, attention: {
            "asked": query,
            "new": (key, value),
            "past": past,
            "attention": attention,
        },
        result=lambda s: s.returned,
        axes=OUTPUT_AXES,
        steps=decoding.Decoding,
        kept=Kept("decode_step", "attncourse.smollm.decode_step"),
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
        **asked("accepted", "logits draft past", of=decoding.Checking),
        judge=decoding.judge_accepted,
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
)

QUESTIONS = (
    Question("cheated", right="c", tempting="a").because(
        a="The lowest loss is for those who see the words before only. This model has the next word in sight.",
        b="It has not learned any sentence. It has learned to look one place ahead.",
        c="In training it copied the next word. When it writes there is no next word: it has never had to guess one.",
    ),
    Question("hidden_bugs", right="b", tempting="c").because(
        a="Places that restart, if you counted them, are wrong from the second token on, one at a time as well.",
        b="A single new token may see all keys, in whatever order they are kept. A mask that is missing, or an order "
        "that is wrong, has nothing to spoil.",
        c="Two of them give exactly what is right, token by token.",
    ),
)

RECALL = (
    Question("sharper", right="b", tempting="a").because(
        a="V says what is handed over, not to whom one listens: the weights stay as they are.",
        b="Softmax sees the scores over sqrt(d_k). Twice the scores, and the weight on the best key grows.",
        c="A wider head with the same blocks has the same scores, over a larger root: its weights are softer.",
    ),
    Question("parked", right="c", tempting="a").because(
        a="W_O v was 3 % as long there as for a word, so the weight of 0.89 made up only 0.27 of the lengths that are "
        "added up.",
        b="Parked is not nothing: [CLS] made up 0.27 of the lengths that this head adds up, and up to 0.52 in another "
        "head.",
        c="Weight is not influence: what counts is the weight times the length of what is handed over.",
    ),
    Question("one_new_token", right="b", tempting="a").because(
        a="That is the upper left: query 0 sees key 0. It is right for the first token, not for the sixth.",
        b="The new token is the last of the six: in the lower right corner its row allows every key.",
        c="A causal mask hides what comes later, and nothing comes later than the newest token.",
    ),
)
