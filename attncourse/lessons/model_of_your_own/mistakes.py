"""The mistakes that only A model of your own knows."""

import numpy as np

from attnlib.core import softmax

from ...mistakes.mistake import Mistake

MISTAKES = (
    Mistake(
        "targets_not_shifted",
        behaves_as_if="the target of a token were the token itself",
        symptom="The loss falls to nearly nothing, and the model writes its last letter again and again.",
        hint="What must the model say when it has read the first token of a window?",
        then="The second: y reads one position further on than x.",
        variants=({"shift": lambda s: 0},),
    ),
    Mistake(
        "targets_elsewhere",
        behaves_as_if="the targets stood somewhere else than right behind their tokens",
        symptom="It trains without an error, and learns another token than the next; rolled windows do so at an end.",
        hint="The window begins at position 3. At which position does its first target stand?",
        then="At 4: every target stands exactly one position behind its token.",
        variants=(
            *({"shift": lambda s, by=by: by or s.n} for by in (-1, 2, None)),
            {"both": lambda s: np.stack([s.y, s.x])},
            *({"y": lambda s, axis=axis: np.roll(s.x, -1, axis)} for axis in (-1, 0)),
        ),
    ),
    Mistake(
        "windows_by_reshape",
        behaves_as_if="windows were cut by a reshape that mixes rows and columns",
        symptom="The shape is right, and neighbours in a row are no neighbours in the text.",
        hint="How far apart in the text do the first two tokens of a row stand?",
        then="One position. Put the starts into a column and the steps into a row before you add them.",
        variants=({"at": lambda s: (np.arange(s.n)[:, None] + s.starts).reshape(len(s.starts), s.n)},),
    ),
    Mistake(
        "window_one_short",
        behaves_as_if="the last token of a window were its last target, so that n - 1 pairs are left",
        symptom="Nothing is wrong but the number: the model never trains at its last position.",
        hint="How many tokens of the text do n pairs need?",
        then="n + 1: x has the first n of them, y the last n.",
        variants=({"both": lambda s: np.stack([s.x[:, :-1], s.x[:, 1:]])},),
    ),
    Mistake(
        "nats_for_bits",
        behaves_as_if="the natural logarithm were left as it is",
        symptom="The result counts nats, and looks 1.44 times as good.",
        hint="How many nats is a fair coin worth, and how many bits?",
        then="0.693 and 1: divide by the natural logarithm of 2.",
        variants=({"bits": lambda s: s.mean},),
    ),
    Mistake(
        "surprise_added_up",
        behaves_as_if="surprise were added up, or averaged over the last positions alone",
        symptom="A larger batch then looks like a worse model, or thirty-one of thirty-two targets go to waste.",
        hint="How many numbers are averaged for logits (3, 5, 7)?",
        then="Fifteen: one for each target.",
        variants=tuple(
            {"mean": mean}
            for mean in (lambda s: s.nats.sum(), lambda s: s.nats.sum(-1).mean(), lambda s: s.nats[:, -1].mean())
        ),
    ),
    Mistake(
        "log_of_the_mean",
        behaves_as_if="shares were averaged before the logarithm was taken",
        symptom="One sure guess hides many poor ones.",
        hint="Two targets with shares of a half and of a thousandth: how many bits is each worth?",
        then="1 and 10, so more than 5 on average. The logarithm comes first.",
        variants=({"bits": lambda s: -np.log2(np.exp(-s.nats).mean())},),
    ),
    Mistake(
        "target_not_asked",
        behaves_as_if="the targets were never looked at",
        symptom="It measures how sure the model is, right or wrong.",
        hint="Exchange the targets. Does your result change?",
        then="It has to: pick the logarithm that belongs to the target.",
        variants=(
            {"nats": lambda s: -s.log_p.max(-1)},
            {"nats": lambda s: -(np.exp(s.log_p) * s.log_p).sum(-1)},
            {"nats": lambda s: -s.log_p.mean(-1)},
        ),
    ),
    Mistake(
        "softmax_over_positions",
        behaves_as_if="shares summed to 1 over positions, or over the batch, not over letters",
        symptom="A position then takes shares from its neighbours, also from later ones.",
        hint="Which axis counts the letters that may come next?",
        then="The last one.",
        variants=(
            {"along": lambda s: 1},
            {"along": lambda s: 0},
            {"last": lambda s: lambda z: softmax(z[0] / s.temperature, 0)[-1], "shares": lambda s: lambda row: row},
        ),
    ),
    Mistake(
        "exponential_too_large",
        behaves_as_if="no row had its own largest logit subtracted, or the softmax came before the logarithm",
        symptom="The exponential of a large logit is inf; a probability that float64 holds as 0 has no logarithm.",
        hint="What is the exponential of 1200? And the logarithm of a probability that float64 holds as 0?",
        then="inf, and -inf. Subtract the largest logit of each row first, and stay with logarithms.",
        variants=(
            {"highest": lambda s: 0.0},
            {"highest": lambda s: s.logits.max()},
            *({"nats": lambda s, highest=highest: -np.log(_share(s, highest))} for highest in (0.0, None)),
            *({"nats": lambda s, least=least: -np.log(_share(s) + least)} for least in (1e-9, 1e-12, 1e-8, 1e-10)),
        ),
    ),
    Mistake(
        "logits_for_logarithms",
        behaves_as_if="logits were taken for logarithms of shares",
        symptom="Add 5 to all logits: no share moves, and the result does.",
        hint="What do the shares sum to, if the exponential of each logit is one?",
        then="To anything. Subtract the logarithm of that sum from each logit.",
        variants=({"log_sum": lambda s: 0.0, "highest": lambda s: 0.0},),
    ),
    Mistake(
        "residual_lost",
        behaves_as_if="what attention or the network makes stood in the place of x, where it should be added to it",
        symptom="Without both sums this model learns how frequent letters are, and nothing more.",
        hint="What comes out if attention and network return nothing but zeros?",
        then="x, as it came in. Each part is added.",
        variants=(
            {"middle": lambda s: s.attention(s.norm_1(s.x), s.mask), "end": lambda s: s.network(s.norm_2(s.middle))},
            {"middle": lambda s: s.attention(s.norm_1(s.x), s.mask)},
            {"end": lambda s: s.network(s.norm_2(s.middle))},
        ),
    ),
    Mistake(
        "sum_of_the_normed",
        behaves_as_if="norms stood on the path itself: in the sums, or behind them as in the layers of 2017",
        symptom="A norm on the path forgets how long the vectors were, and these weights belong to the other order.",
        hint="If attention and network return zeros, what comes out?",
        then="x itself, not x behind a norm. Only what attention and network read is normed.",
        variants=(
            {
                "middle": lambda s: s.norm_1(s.x + s.attention(s.x, s.mask)),
                "end": lambda s: s.norm_2(s.middle + s.network(s.middle)),
            },
            {
                "middle": lambda s: (y := s.norm_1(s.x)) + s.attention(y, s.mask),
                "end": lambda s: (y := s.norm_2(s.middle)) + s.network(y),
            },
            {"middle": lambda s: (y := s.norm_1(s.x)) + s.attention(y, s.mask)},
            {"end": lambda s: (y := s.norm_2(s.middle)) + s.network(y)},
        ),
    ),
    Mistake(
        "parts_not_in_turn",
        behaves_as_if="the network did not read the sum of x and attention, or attention were dropped from the end",
        symptom="It trains, and trained weights give other numbers.",
        hint="Which vectors does the network read, and to which is its result added?",
        then="It reads the first sum behind norm_2, and is added to that sum.",
        variants=(
            {"end": lambda s: s.x + s.network(s.norm_2(s.middle))},
            {"end": lambda s: s.middle + s.network(s.norm_2(s.found))},
            {"end": lambda s: s.middle + s.network(s.norm_2(s.x))},
            {
                "middle": lambda s: s.x + s.network(s.norm_2(s.x)),
                "end": lambda s: s.middle + s.attention(s.norm_1(s.middle), s.mask),
            },
        ),
    ),
    Mistake(
        "norm_left_out",
        behaves_as_if="a norm were left out, or one of them served twice",
        symptom="Two layers may train all the same; trained weights give other numbers.",
        hint="Through which function does x go before attention, and through which the sum before the network?",
        then="Through norm_1, and through norm_2.",
        variants=(
            {"middle": lambda s: s.x + s.attention(s.x, s.mask), "end": lambda s: s.middle + s.network(s.middle)},
            {"middle": lambda s: s.x + s.attention(s.x, s.mask)},
            {"end": lambda s: s.middle + s.network(s.middle)},
            {"end": lambda s: s.middle + s.network(s.norm_1(s.middle))},
            {"middle": lambda s: s.x + s.attention(s.norm_2(s.x), s.mask)},
        ),
    ),
    Mistake(
        "norms_exchanged",
        behaves_as_if="norm_1 and norm_2 had changed places",
        symptom="A model trained so never notices; weights trained in the right places give other numbers.",
        hint="Which norm stands in front of attention, and which in front of the network?",
        then="norm_1 in front of attention, norm_2 in front of the network.",
        variants=(
            {
                "middle": lambda s: s.x + s.attention(s.norm_2(s.x), s.mask),
                "end": lambda s: s.middle + s.network(s.norm_1(s.middle)),
            },
        ),
    ),
    Mistake(
        "part_forgotten",
        behaves_as_if="attention, or the network, had not been called",
        symptom="Without the network this model needs more bits; without attention no letter knows the others.",
        hint="How many sums does the task ask for, and how many do you return?",
        then="Two: x plus what attention makes, and this plus what the network makes.",
        variants=({"end": lambda s: s.middle}, {"middle": lambda s: s.x}),
    ),
    Mistake(
        "first_of_batch_taken",
        behaves_as_if="only the first entry of what attention returns were added",
        symptom="With one sequence every token gets what the first one found; in a batch all get the first sequence.",
        hint="Your class returns output and weights. What does `attention` return here?",
        then="The output alone, as long as x: add it without [0].",
        variants=({"found": lambda s: s.attention(s.norm_1(s.x), s.mask)[0]},),
    ),
    Mistake(
        "other_tokens_seen",
        behaves_as_if="the model saw other tokens than the last n",
        symptom="It never reads what it has just written, or it writes as a model with a shorter memory.",
        hint="Ten tokens are written and the model sees six. Which six?",
        then="The last six, the newest among them.",
        variants=(
            {"seen": lambda s: lambda t: t[: s.n]},
            {"seen": lambda s: lambda t: t[-1:]},
            {"seen": lambda s: lambda t: t[-s.n + 1 :]},
            {"seen": lambda s: lambda t: list(s.prompt)[-s.n :]},
        ),
    ),
    Mistake(
        "never_cropped",
        behaves_as_if="the model saw all tokens, however many there are",
        symptom="It raises as soon as there are more tokens than positions.",
        hint="For how many positions does the model have vectors?",
        then="For n. Hand over the last n tokens, or fewer.",
        variants=({"seen": lambda s: lambda tokens: tokens},),
        raises=True,
    ),
    Mistake(
        "first_row_asked",
        behaves_as_if="the row of the first token were asked for the next one",
        symptom="That row has seen one token, and answers what follows it.",
        hint="Which row of the logits has seen all tokens?",
        then="The last one.",
        variants=({"last": lambda s: lambda z: z[0, 0]},),
    ),
    Mistake(
        "no_row_chosen",
        behaves_as_if="the logits of all positions were drawn from at once",
        symptom="Of m positions and 8 kinds it draws a number up to 8 m, which no letter has.",
        hint="Logits are (1, m, kinds). Which shape is left behind [0], and behind [-1]?",
        then="(m, kinds), behind both: the batch has one entry. [0, -1] leaves the row of the last token, (kinds,).",
        variants=({"last": lambda s: lambda z: z[0]},),
    ),
    Mistake(
        "no_batch_axis",
        behaves_as_if="the model were given tokens (m,), without a batch axis",
        symptom="It takes them for a batch, and does not read them as one text; many models raise an error.",
        hint="The model wants tokens (1, m). Which shape have yours?",
        then="(m,): np.array(tokens[-n:])[None] puts an axis of length 1 in front.",
        variants=({"batch": lambda s: np.array}, {"batch": lambda s: np.array, "last": lambda s: lambda z: z[-1]}),
    ),
    Mistake(
        "logits_for_shares",
        behaves_as_if="logits were drawn from as they are, without a softmax",
        symptom="Negative shares, and the temperature no longer does anything: `draw` divides by the sum.",
        hint="What does `draw` want, and can a logit be that?",
        then="Probabilities. A logit may be negative: take the softmax first.",
        variants=({"shares": lambda s: lambda row: row / s.temperature},),
    ),
    Mistake(
        "temperature_misplaced",
        behaves_as_if="the temperature multiplied the logits, or did nothing, as where shares are divided by it",
        symptom="A low temperature then makes the text wilder, or leaves it as it is.",
        hint="A temperature of a half: should differences between logits grow or shrink?",
        then="Grow, twofold: divide the logits, before the softmax.",
        variants=({"shares": lambda s: lambda row: softmax(row * s.temperature)}, {"shares": lambda s: softmax}),
    ),
    Mistake(
        "likeliest_taken",
        behaves_as_if="the likeliest token were taken each time",
        symptom="The text soon goes round in a circle.",
        hint="What is `draw` for?",
        then="It draws a token from the shares.",
        variants=({"draw": lambda s: lambda p: int(np.argmax(p))},),
    ),
    Mistake(
        "wrong_number_written",
        behaves_as_if="one token more or fewer were written, or the prompt were left out of what is returned",
        symptom="The text is longer or shorter than asked for.",
        hint="With a prompt of 3 and count=1: how many tokens do you return?",
        then="Four: the prompt, and one new token.",
        variants=(
            {"rounds": lambda s: s.count + 1},
            {"rounds": lambda s: s.count - 1},
            {"written": lambda s: np.array(s.tokens[len(s.prompt) :])},
        ),
    ),
)


def _share(s, highest=None):
    """Return the share of each target as a number, which may be 0, or NaN where nothing was subtracted first."""
    e = np.exp(s.logits - (s.highest if highest is None else highest))
    return np.take_along_axis(e / e.sum(-1, keepdims=True), s.targets[..., None], -1)[..., 0]
