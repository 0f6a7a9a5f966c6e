"""The mistakes that only Today's head knows, and its steps: RoPE, the norm. The words of some: mistakes.toml."""

import itertools
import math
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from attnlib import masks
from attnlib.rotary import PAIRINGS, frequencies, halves, neighbours, turn

from ...engine.steps import Steps
from ...mistakes.mistake import Mistake, read_mistakes
from ...mistakes.weights import TRIANGLE

BASE = 10_000.0


def rotate(x, start=0, pairs=halves, base=BASE):
    """Rotate pair c of the token at position p by p * omega_c; the first token of x has the position `start`."""
    return turn(x, start + np.arange(x.shape[-2]), pairs, frequencies(x.shape[-1], base))


def rms_norm(x, gain=1.0):
    return gain * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


class HeadSteps(Steps):
    # --- 12.1
    base, pairing = BASE, "halves"
    pairs = cached_property(lambda s: PAIRINGS[s.pairing])
    omega = cached_property(lambda s: frequencies(s.x.shape[-1], s.base))
    position = cached_property(lambda s: s.positions)
    rotated = cached_property(lambda s: turn(s.x, s.position, s.pairs, s.omega))

    # --- 12.2
    # The position of the first query.
    first_position = cached_property(lambda s: s.keys.shape[-2] - s.queries.shape[-2])
    norm = cached_property(lambda s: rms_norm)
    # What rotates tokens of which the first has a given position.
    rotate_from = cached_property(lambda s: rotate)
    q = cached_property(lambda s: s.rotate_from(s.norm(s.queries, s.q_gain), s.first_position))
    k = cached_property(lambda s: s.rotate_from(s.norm(s.keys, s.k_gain), 0))
    v = cached_property(lambda s: s.values)
    mask = cached_property(lambda s: masks.causal_mask(s.queries.shape[-2], s.keys.shape[-2], align="lower_right"))


def _pairs_read_and_written(reading, writing):
    def pairs(x):
        a, b, _ = reading(x)
        return a, b, writing(x)[2]

    return pairs


def _angles_laid_out(partners, repeat):
    """Rotate with partners found in one way and angles laid out in the other, as x cos + partner sin."""

    def rotate_step(s):
        angle = repeat(_angle(s))
        a, b, back = partners(s)(s.x)
        return s.x * np.cos(angle) + back(-b, a) * np.sin(angle)

    return {"rotated": rotate_step}


_side_by_side, _one_after_another = partial(np.repeat, repeats=2, axis=-1), partial(np.tile, reps=2)  # of angles


def _angle(s):
    return s.position[:, None] * s.omega  # (n, d_k / 2)


def _by(new_pair):
    """Replace the rotation by `new_pair(a, b, cos, sin)`, which returns both features of a pair."""

    def rotate_step(s):
        a, b, back = s.pairs(s.x)
        return back(*new_pair(a, b, np.cos(_angle(s)), np.sin(_angle(s))))

    return {"rotated": rotate_step}


def _overwritten(a, b, cos, sin):
    a = a * cos - b * sin
    return a, a * sin + b * cos


def _frequencies_by(change):
    """Replace the frequencies by `change(share of the way through the pairs, base)`."""
    return {"omega": lambda s: change(2 * np.arange(s.x.shape[-1] // 2) / s.x.shape[-1], s.base)}


def _also_in_one_way(*variants):
    """Yield variants, and each of them in one of the two ways to pair alone."""
    yield from variants
    for way, (name, step) in itertools.product(PAIRINGS, (pair for variant in variants for pair in variant.items())):
        right = vars(HeadSteps)[name].func
        yield {name: lambda s, way=way, step=step, right=right: (step if s.pairing == way else right)(s)}


_neighbours_rotated = partial(rotate, pairs=neighbours)


def _upper_left(s):
    return masks.causal_mask(s.queries.shape[-2], s.keys.shape[-2], align="upper_left")


def _on_both_or_one(norm):
    """Replace the norm of both, of the queries alone, and of the keys alone."""
    yield {"norm": lambda s: norm}
    yield {"q": lambda s: s.rotate_from(norm(s.queries, s.q_gain), s.first_position)}
    yield {"k": lambda s: s.rotate_from(norm(s.keys, s.k_gain), 0)}


def _layer_norm(x, gain):
    return gain * (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)


def _looking(d_k, backs, amplitude=8.0, joined=sum):
    """Return (query, key): a score is linear in the query, so one query for each distance, added up, sees all."""
    key = np.full(d_k, amplitude)
    return joined(rotate(key[None], -back)[0] for back in backs), key


def _queries(gain):
    return lambda s: rotate(rms_norm(s.queries, getattr(s, gain)), s.first_position)


def _keys(gain):
    return lambda s: rotate(rms_norm(s.keys, getattr(s, gain)))


class Looking(HeadSteps):
    @cached_property
    def looking(self):
        return _looking(self.d_k, (self.near, self.far))


class Slowing(HeadSteps):
    turns = cached_property(lambda s: s.trained * s.omega / (2 * np.pi))
    keep = cached_property(lambda s: np.clip((s.turns - 1) / 31, 0, 1))
    slowed = cached_property(lambda s: s.omega * s.keep + s.omega / s.factor * (1 - s.keep))


def slow_by_parts(omega, factor, trained):
    """Slow pairs by parts: by `factor` those of at most 1 turn in `trained` positions, from 32 on none (Peng 2023)."""
    return Slowing(omega=omega, factor=factor, trained=trained).slowed


MISTAKES = (
    *TRIANGLE,
    Mistake(
        "rotation_forgotten",
        behaves_as_if="nothing is rotated",
        symptom="At every position, a token has the same query and the same key.",
        hint="Where does the position of a token enter your code?",
        then="It sets the angle, position times frequency. Rotate each pair by that angle.",
        variants=({"rotated": lambda s: s.x}, {"rotate_from": lambda s: lambda x, start: x}),
    ),
    Mistake(
        "pairings_mixed",
        behaves_as_if="features are paired in another way than the task says, or in one way here and in another way "
        "there",
        symptom="Each of the two ways works by itself; weights that were trained with one give nonsense with the "
        "other.",
        hint="Which two features rotate together: neighbours, or one of each half? Where do both stand in the result?",
        then="Take the pairs as the task names them, and write each back to where it came from.",
        variants=(
            {"pairs": lambda s: PAIRINGS["halves" if s.pairing == "neighbours" else "neighbours"]},
            {"pairs": lambda s: _pairs_read_and_written(neighbours, halves)},
            {"pairs": lambda s: _pairs_read_and_written(halves, neighbours)},
            {"pairs": lambda s: _pairs_read_and_written(halves, PAIRINGS[s.pairing])},
            {"pairs": lambda s: _pairs_read_and_written(neighbours, PAIRINGS[s.pairing])},
            _angles_laid_out(lambda s: halves, _side_by_side),
            _angles_laid_out(lambda s: neighbours, _one_after_another),
            *(_angles_laid_out(lambda s: PAIRINGS[s.pairing], lay) for lay in (_side_by_side, _one_after_another)),
            {"rotate_from": lambda s: _neighbours_rotated},
            {"q": lambda s: _neighbours_rotated(s.norm(s.queries, s.q_gain), s.first_position)},
            {"k": lambda s: _neighbours_rotated(s.norm(s.keys, s.k_gain), 0)},
        ),
    ),
    Mistake(
        "pairing_ignored",
        behaves_as_if="features are paired in one way, whatever `pairing` says",
        symptom="Right for the models of one pairing, and wrong for those of the other.",
        hint="Which of your arguments does the result not depend on?",
        then="It should depend on `pairing`: choose the two features of a pair by it, and where both go back.",
        variants=({"pairs": lambda s: halves}, {"pairs": lambda s: neighbours}),
    ),
    Mistake(
        "base_ignored",
        behaves_as_if="the base is not that of the task: in my_rope 10,000, whatever `base` says, in the head that of "
        "another model",
        symptom="Right for weights that were trained with this base, and wrong for all others.",
        hint="Which number stands at the bottom of your powers?",
        then="In my_rope `base`, so that the frequencies are base ** (-2c / d_k); in the head it is 10,000.",
        variants=(
            {"omega": lambda s: frequencies(s.x.shape[-1])},
            *({"rotate_from": lambda s, base=base: partial(rotate, base=base)} for base in (500.0, 1e5, 5e5, 1e6)),
        ),
    ),
    Mistake(
        "sign_lost",
        behaves_as_if="both features of a pair are computed with the same sign",
        symptom="That is no rotation: lengths change, and a score does not depend on the distance alone.",
        hint="Rotate (0, 1) by a small angle. Should its first entry become positive or negative?",
        then="Negative: (a, b) becomes (a cos - b sin, a sin + b cos), with one minus.",
        variants=tuple(
            _also_in_one_way(
                _by(lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)),
                _by(lambda a, b, cos, sin: (a * cos - b * sin, b * cos - a * sin)),
                _by(lambda a, b, cos, sin: (a * cos - b * sin, a * sin - b * cos)),
            )
        ),
    ),
    Mistake(
        "sine_and_cosine_exchanged",
        behaves_as_if="sine and cosine have changed places",
        symptom="At position 0 nothing should change. Here the two features of each pair change places.",
        hint="Your angle at position 0 is 0. What are its cosine and its sine, and what becomes of (a, b)?",
        then="1 and 0, so (a, b) stays: (a cos - b sin, a sin + b cos).",
        variants=(_by(lambda a, b, cos, sin: (a * sin - b * cos, a * cos + b * sin)),),
    ),
    Mistake(
        "positions_added",
        behaves_as_if="sine and cosine of the angles are added to the features, which are not rotated",
        symptom="The models of 'train and look' did that at the bottom. A score then depends on both positions.",
        hint="What does a rotation do to the length of a pair? What does your code do to it?",
        then="A rotation keeps the length. Multiply: (a cos - b sin, a sin + b cos).",
        variants=(_by(lambda a, b, cos, sin: (a + sin, b + cos)), _by(lambda a, b, cos, sin: (a + cos, b + sin))),
    ),
    Mistake(
        "queries_misplaced",
        behaves_as_if="the first query has another position than n_k - n_q: n_k, n_q, or one beside any of these",
        symptom="A query no longer has the position of its own key, so distances are wrong.",
        hint="In a whole sequence, which position has the first query, and which one its own key?",
        then="Both have 0. Behind `past` tokens the first query has the position `past`, which is n_k - n_q.",
        variants=(
            *({"first_position": lambda s, by=by: s.keys.shape[-2] - s.queries.shape[-2] + by} for by in (1, -1)),
            *(
                {"first_position": lambda s, of=of, by=by: getattr(s, of).shape[-2] - by}
                for of in ("keys", "queries")
                for by in (0, 1)
            ),
            {"first_position": lambda s: s.keys.shape[-2] * (s.keys.shape[-2] > s.queries.shape[-2])},
        ),
    ),
    Mistake(
        "positions_counted",
        behaves_as_if="the tokens are counted through, whatever `positions` holds",
        symptom="Right without gaps; after a gap, every token is rotated by the angle of another position.",
        hint="Print your positions for positions = [3, 4, 9]. Is there a gap?",
        then="Use the numbers in `positions` themselves, not np.arange of their count.",
        variants=(
            {"position": lambda s: np.arange(len(s.positions))},
            {"position": lambda s: s.positions[0] + np.arange(len(s.positions))},
        ),
    ),
    Mistake(
        "first_half_overwritten",
        behaves_as_if="the second feature of a pair is computed from the first after its own rotation",
        symptom="The first feature of the pair held its new value already when the second was computed.",
        hint="Which value of a does the line for b need, and which one does it get?",
        then="The a from before the rotation: compute both new values first, then write them.",
        variants=tuple(_also_in_one_way(_by(_overwritten))),
    ),
    Mistake(
        "frequencies_half_as_far",
        behaves_as_if="the exponent runs half as far, or twice as far, as it should",
        symptom="The slowest pair rotates too fast, or too slowly, for the weights of any model.",
        hint="There are d_k / 2 pairs. Which exponent belongs to the last one?",
        then="-(d_k - 2) / d_k: the pairs are counted 0, 1, 2, ..., and the exponent is -2c / d_k.",
        variants=tuple(
            _also_in_one_way(
                _frequencies_by(lambda share, base: base ** (-share / 2)),
                _frequencies_by(lambda share, base: base ** (-2 * share)),
            )
        ),
    ),
    Mistake(
        "rotated_backwards",
        behaves_as_if="pairs rotate in the other direction",
        symptom="Scores depend on the distance all the same, but weights of a model that rotates forwards do not fit.",
        hint="Rotate (1, 0) by a small angle. Should its second entry grow or fall?",
        then="Grow: (a, b) becomes (a cos - b sin, a sin + b cos).",
        variants=tuple(_also_in_one_way({"omega": lambda s: -frequencies(s.x.shape[-1], s.base)})),
    ),
    Mistake(
        "norm_after_rotation",
        behaves_as_if="it normalises after the rotation, where the gain belongs before it",
        symptom="Without a gain both orders are equal, since a rotation keeps the length. The gain differs within a "
        "pair.",
        hint="Which comes first: the gain of a feature, or the rotation of its pair?",
        then="The gain: norm and gain first, then the rotation.",
        variants=(
            {
                "q": lambda s: s.norm(s.rotate_from(s.queries, s.first_position), s.q_gain),
                "k": lambda s: s.norm(s.rotate_from(s.keys, 0), s.k_gain),
            },
        ),
    ),
    Mistake(
        "norm_forgotten",
        behaves_as_if="queries or keys keep their length: they are not normalised",
        symptom="A key with a large norm wins, whatever the query asks.",
        hint="What is the mean square of a query after your norm, before the gain?",
        then="It should be 1, for queries and for keys: divide each by the root of its mean square.",
        variants=(*_on_both_or_one(lambda x, gain: x), *_on_both_or_one(lambda x, gain: gain * x)),
    ),
    Mistake(
        "normed_to_length_one",
        behaves_as_if="queries and keys are divided by their length, not by their root mean square",
        symptom="Scores are smaller by a factor of d_k, and the head can hardly choose.",
        hint="What is the mean square of a query after your norm, before the gain?",
        then="It should be 1: divide by the root of the mean of the squares, not of their sum.",
        # One side alone is the same as a division by d_k.
        variants=({"norm": lambda s: lambda x, gain: gain * x / np.linalg.norm(x, axis=-1, keepdims=True)},),
    ),
    Mistake(
        "mean_subtracted",
        behaves_as_if="the mean of the features is subtracted: that is layer norm",
        symptom="RMS norm keeps the mean; weights that were trained with it need that mean.",
        hint="What does RMS norm divide by, and what does it subtract?",
        then="It subtracts nothing: divide by the root of the mean square alone.",
        variants=tuple(_on_both_or_one(_layer_norm)),
    ),
    Mistake(
        "another_gain",
        behaves_as_if="queries or keys are stretched by another gain than their own",
        symptom="The two may be exchanged; some models multiply by 1 + gain, this one does not.",
        hint="There are two gains. By which numbers are the features of a query multiplied, and those of a key?",
        then="By q_gain and by k_gain themselves, once, after the division by the root mean square.",
        variants=(
            {"q": _queries("k_gain"), "k": _keys("q_gain")},
            {"k": _keys("q_gain")},
            {"q": _queries("k_gain")},
            {"norm": lambda s: lambda x, gain: rms_norm(x, 1 + gain)},
            {"norm": lambda s: lambda x, gain: rms_norm(x, gain**2)},
        ),
    ),
    *read_mistakes(
        Path(__file__).with_name("mistakes.toml"),
        frequencies_from_one=(_frequencies_by(lambda share, base: base ** -(share + share[1])),),
        offset_forgotten=({"first_position": lambda s: 0}, {"first_position": lambda s: 0, "mask": _upper_left}),
        positions_from_one=({"position": lambda s: s.positions + 1},),
        frequencies_to_the_end=(_frequencies_by(lambda share, base: base ** -(share / share[-1])),),
        base_as_exponent=(_frequencies_by(lambda share, base: np.exp(-base * share)),),
        frequencies_rising=(_frequencies_by(lambda share, base: base**share),),
        value_rotated=({"v": lambda s: rotate(s.values)},),
        only_one_side_rotated=({"q": lambda s: s.norm(s.queries, s.q_gain)}, {"k": lambda s: s.norm(s.keys, s.k_gain)}),
        gain_forgotten=tuple(_on_both_or_one(lambda x, gain: rms_norm(x))),
        plain_attention=({"q": lambda s: s.queries, "k": lambda s: s.keys},),
        mask_from_the_first_key=({"mask": _upper_left},),
        pairs_put_elsewhere=tuple(
            {"pairs": lambda s, back=back: _pairs_read_and_written(PAIRINGS[s.pairing], back)}
            for back in (halves, neighbours)
        ),
        normed_over_tokens=tuple(
            _on_both_or_one(lambda x, gain: gain * x / np.sqrt((x**2).mean(axis=-2, keepdims=True) + 1e-6))
        ),
        value_normed=({"v": lambda s: rms_norm(s.values)},),
        looks_at_itself=({"looking": lambda s: _looking(s.d_k, (0,))},),
        looks_ahead=({"looking": lambda s: _looking(s.d_k, (-s.near, -s.far))},),
        looks_elsewhere=({"looking": lambda s: _looking(s.d_k, ((s.near + s.far) // 2,))},),
        one_position_only=({"looking": lambda s: _looking(s.d_k, (s.near,))},),
        product_of_queries=({"looking": lambda s: _looking(s.d_k, (s.near, s.far), joined=math.prod)},),
        too_soft=({"looking": lambda s: _looking(s.d_k, (s.near, s.far), 1.0)},),
        no_pair_slowed=({"slowed": lambda s: s.omega},),
        every_pair_slowed=({"slowed": lambda s: s.omega / s.factor},),
        wrong_end_slowed=({"slowed": lambda s: s.omega * (1 - s.keep) + s.omega / s.factor * s.keep},),
        ramp_is_a_step=tuple({"keep": lambda s, at=at: (s.turns >= at) * 1.0} for at in (1, 16, 16.5, 32)),
        ramp_not_in_turns=(
            {"keep": lambda s: np.clip(np.log(s.turns) / np.log(32), 0, 1)},
            {"keep": lambda s: np.clip((1 - 1 / s.turns) * 32 / 31, 0, 1)},
        ),
        ramp_ends_elsewhere=tuple(
            {"keep": lambda s, ends=ends: np.interp(s.turns, ends, (0, 1))} for ends in ((0, 32), (0, 31), (1, 33))
        ),
        frequencies_not_mixed=(
            {"slowed": lambda s: s.omega / (s.keep + (1 - s.keep) * s.factor)},
            {"slowed": lambda s: s.omega * s.factor ** (s.keep - 1)},
        ),
        ramp_not_clipped=({"keep": lambda s: (s.turns - 1) / 31},),
        another_unit_of_angle=tuple(
            {"position": lambda s, unit=unit: s.positions * unit} for unit in (np.pi / 180, 180 / np.pi, 2 * np.pi)
        ),
        factor_multiplied=({"slowed": lambda s: s.omega * s.keep + s.omega * s.factor * (1 - s.keep)},),
        radians_for_turns=({"turns": lambda s: s.trained * s.omega},),
        turns_of_the_new_length=({"turns": lambda s: s.trained * s.factor * s.omega / (2 * np.pi)},),
    ),
)
