"""The later puzzles of Program a head, with places, masks and several heads."""

from dataclasses import replace

import numpy as np

from attnlib import core

from ...convoy import FLAG, FLAGS, NOTE, ONE, PILOT, PLACE, PLACES, WIDE, Convoy, rows
from .puzzle import Puzzle
from .puzzle_mistakes import RULE, exchange, follows, hard_weights, right_after_change
from .rules import all_at, at_pilot, back, column, in_front, itself, only, share, where

# --- places and masks


def _latest(pick=max, itself=0, see_all=False, alone="pilot"):
    """Look at one earlier ship of the same flag; where there is none, at the pilot, or at the ship in front."""

    def rule(c):
        weights = np.zeros((c.n, c.n))
        for i, kind in enumerate(c.kinds):
            same = [j for j in range(c.n if see_all else i + itself) if c.kinds[j] == kind]
            weights[i, pick(same) if same else i - 1 if alone == "front" else 0] = 1
        return only(~c.pilot, weights)

    return rule


def _shared_earlier(c):
    same = (c.kinds[:, None] == c.kinds) & np.tri(c.n, k=-1, dtype=bool)
    return only(~c.pilot, where(same.any(axis=-1), share(same), at_pilot(c)))


def _of_its_flag(seen):
    """Look at all ships of the same flag that are seen; where there is none, at all that are seen."""

    def rule(c):
        see = np.tri(c.n, k=seen, dtype=bool)
        same = (c.kinds[:, None] == c.kinds) & see
        return only(~c.pilot, where(same.any(axis=-1), share(same), share(see)))

    return rule


def _behind_the_mask(a):
    return a.each(lambda head: head._replace(mask=np.tri(PLACES, k=-1, dtype=bool)))


def _flag_alone(p, a):
    """Behind any of three masks, and behind the right one as well: there a wish for the pilot would show."""
    as_it_is = any(p.does(a.hard, _of_its_flag(seen), RULE) for seen in (-1, 0, PLACES))
    return as_it_is and p.does(_behind_the_mask(a).hard, _of_its_flag(-1), RULE)


def _place_before_flag(p, a):
    """The last ship looks at the one in front of it, not at its own flag far away."""
    probes = [Convoy(flags, np.ones(7)) for flags in ("*ABBBBA", "*BCCCCB", "*CDDDDC", "*DAAAAD")]
    tried = a, _behind_the_mask(a)  # perhaps its mask hides that one
    return all(hard_weights(p, b, c)[-1, 5] > 0.9 for b in tried for c in probes)


def _late_place_beats_pilot(p, a):
    """Who has met its flag is right, if near. Who has not looks in front from the last place, at the pilot from 2."""

    def latest_if_met(c):
        near = c.places - 1 - _latest()(c).argmax(axis=-1) < 4  # the place may beat a flag that is further away
        return only((_count(c) > 1) & near, _latest()(c))

    far, near = (
        [hard_weights(p, a, Convoy(flags, np.ones(len(flags))))[-1] for flags in texts]
        for texts in (("*AAAAAAB", "*CCCCCCD"), ("*AB", "*CD"))
    )
    parks_near = all(row[0] > 0.3 for row in near) and all(row[6] > 0.9 for row in far)
    return p.does(a.hard, latest_if_met) and parks_near and not _place_before_flag(p, a)


def _latest_behind(place):
    """Look at the latest ship of the same flag if it is behind a place, else at the pilot; at the place, at both."""

    def rule(c):
        latest, near = _latest()(c), at_pilot(c)
        nearest = latest.argmax(axis=-1)  # 0, the pilot, where there is none
        weights = where(nearest > place, latest, np.where((nearest == place)[:, None], (latest + near) / 2, near))
        return only(~c.pilot, weights)

    return rule


def _pilot_beats_flag(p, a):
    """Up to some place the pilot beats the right flag, and behind it the flag wins by the help of its place."""
    helped = any(p.does(a.hard, _latest_behind(place), RULE) for place in np.arange(1, 6.1, 0.5))
    return helped and not p.does(a.hard, _only_pilot, RULE)


def _only_pilot(c):
    return only(~c.pilot, at_pilot(c))


def _count(c):
    """How many ships of its flag each has met, itself included."""
    return np.array([(c.kinds[: i + 1] == kind).sum() for i, kind in enumerate(c.kinds)])


def _depending_on_count(of_count):
    """Return the rule by which each ship receives a number that depends on its count and its place."""
    return lambda c: only(~c.pilot, column(np.broadcast_to(of_count(_count(c), c.places), c.n)))


def _counting():
    W_Q = rows(FLAG, 20 * np.eye(5))
    W_Q[ONE, PILOT] = 20
    return W_Q, rows(FLAG, np.eye(5)), rows([PILOT], [[1]])


_STEP = np.eye(PLACES, k=-1)
_STEP[0, 0] = 1


def _all_ones(by_the_pilot):
    """Everybody receives 1: all of the weight is the pilot's, or not."""

    def sign(p, a):
        pilots = all(hard_weights(p, a, c)[1:, 0].min() > 0.9 for c in p.convoys)
        return pilots == by_the_pilot and p.does(a.hard, _depending_on_count(lambda count, place: 1), 0.02)

    return sign


BY_PLACE = (
    Puzzle(
        "ship_in_front",
        "a function that returns W_Q, W_K: each ship looks at the one in front of it, the pilot at itself; no mask",
        (
            "Write a table of who wants whom among places, 8 x 8.",
            "Place 3 looks at place 2. Where is the 1 of row 3? np.eye(8, k=...) makes such tables.",
            "And where is the 1 of row 0, the pilot's?",
        ),
        want=in_front,
        signs={
            "attends_to_next": follows(lambda c: only((c.places > 0) & (c.places < c.n - 1), back(c, -1))),
            "position_wraps_around": follows(lambda c: where(c.pilot, all_at(c, c.places == PLACES - 1), in_front(c))),
            "itself_only": follows(lambda c: only(c.places > 1, itself(c))),
            "two_back": follows(lambda c: only(c.places > 1, back(c, 2))),
        },
        example=lambda: (rows(PLACE, 20 * _STEP), rows(PLACE, np.eye(PLACES))),
        among={"by_hand": ("*ABCDABC", "*AAAA", "*AB")},
    ),
    Puzzle(
        "latest_of_my_flag",
        "a function that returns W_Q, W_K, mask, with mask (8, 8) of bool: each ship looks at the nearest ship of "
        "its flag in front of it, and where there is none, at the pilot; the pilot's own row is free",
        (
            "There are three wishes: first my flag, else the pilot, and among equals the latest.",
            "Scores add up. Seven steps of the place must stay below the pilot's score, and that below the flag's.",
            "May a ship see itself? The mask decides: np.tri(8, dtype=bool) has the diagonal, with k=-1 it does not.",
        ),
        want=_latest(),
        mask=True,
        signs={
            "includes_itself": follows(_latest(itself=1)),
            "later_ships_seen": follows(_latest(see_all=True)),
            "mask_future_only": right_after_change(lambda head: head._replace(mask=head.mask.T)),
            "ties_shared": follows(_shared_earlier),
            "flag_alone": _flag_alone,
            "earliest": follows(_latest(pick=min)),
            "place_before_flag": _place_before_flag,
            "nobody_parks": follows(_latest(alone="front")),
            "late_place_beats_pilot": _late_place_beats_pilot,
            "pilot_beats_flag": _pilot_beats_flag,
            "pilot_too_strong": follows(_only_pilot),
        },
        among={"by_hand": ("*AAAA", "*ABAB", "*ABACDA", "*ABCDDCB", "*AAAAAAB")},
    ),
    Puzzle(
        "count_with_a_witness",
        "a function that returns W_Q, W_K, W_V, with W_V (15, 1), under a causal mask: each ship receives "
        "1 / (1 + c), where c counts the ships of its flag so far, itself included; the pilot's own row is free",
        (
            "Whose share of the weight shrinks as c grows?",
            "Somebody who is always there must score exactly like a ship of my flag.",
            "Let that one alone give a 1, so that its share is the output.",
        ),
        want=_depending_on_count(lambda count, place: 1 / (1 + count)),
        causal=True,
        d_v=(1,),
        signs={
            "average_of_ones": _all_ones(by_the_pilot=False),
            "no_witness": follows(_depending_on_count(lambda count, place: 0)),
            "witness_too_strong": _all_ones(by_the_pilot=True),
            "everybody_counted": follows(_depending_on_count(lambda count, place: 1 / (1 + place))),
            "share_of_the_ships": follows(_depending_on_count(lambda count, place: count / (1 + count))),
            "only_itself_counted": follows(_depending_on_count(lambda count, place: 0.5)),
        },
        example=_counting,
        among={"by_hand": ("*AAAAAAA", "*ABCD", "*ABABAB")},
    ),
)

# --- heads together


def _mix_own_and_front(own, front):
    """Everybody receives its own cargo and that of the ship in front, each times a number."""
    return lambda c: column(own * c.cargo + front * np.r_[0, c.cargo[:-1]])


def _carries(*pairs):
    return lambda p, a: any(p.does(a.hard, _mix_own_and_front(*by), 0.05) for by in pairs)


def _heads_alike(p, a):
    return all(np.allclose(*(hard_weights(p, a, c, head) for head in (0, 1)), atol=0.02) for c in p.convoys)


def _flags_behind(c):
    """The mean flag right behind the earlier ships of my flag; free where there is none."""
    handed = np.full((c.n, len(FLAGS)), np.nan)
    for i in range(1, c.n):
        behind = [c.kinds[j + 1] for j in range(1, i) if c.kinds[j] == c.kinds[i]]
        if behind:
            handed[i] = np.eye(len(FLAGS))[behind].mean(axis=0)
    return handed


def _own_flag_again(c):
    return np.where(np.isnan(_flags_behind(c)), np.nan, np.eye(len(FLAGS))[c.kinds])


def _induction():
    note, flag = np.zeros((WIDE, WIDE)), rows(FLAG, np.eye(5), notes=True)
    note[FLAG, NOTE] = np.eye(5)
    front = rows(PLACE, 20 * _STEP, notes=True), rows(PLACE, np.eye(PLACES), notes=True)
    return (*front, note), (20 * flag, rows(NOTE, np.eye(5), notes=True), flag)


def _copies(c):
    return share((c.kinds[:, None] == c.kinds) & np.tri(c.n, dtype=bool))


def _behind_copies(c):
    noted = np.r_[0, c.kinds[:-1]]
    return only(~c.pilot, share((c.kinds[:, None] == noted) & np.tri(c.n, dtype=bool)))


def _layer(head, rule):
    def sign(p, a):
        return all(np.nanmax(np.abs(hard_weights(p, a, c, head) - rule(c))) < 0.05 for c in p.convoys)

    return sign


def _both(*signs):
    return lambda p, a: all(sign(p, a) for sign in signs)


def _columns_written(p, a):
    """Tell of each column of x whether layer 1 adds something to it."""
    return np.any([np.abs(p.traces(a, c)[0].output).max(axis=0) > 1e-9 for c in p.convoys], axis=0)


def _writes(columns=slice(None), so=True):
    return lambda p, a: _columns_written(p, a)[columns].any() == so


def _note_mixed(p, a):
    """Layer 2 would be right if the columns to which layer 1 adds had been empty."""
    written, (_, second) = _columns_written(p, a), a.hard.heads

    def error(c):
        x1 = np.where(written, 0, c.x) + p.traces(a.hard, c)[0].output
        out = core.scaled_dot_product_attention(x1 @ second.W_Q, x1 @ second.W_K, x1 @ second.W_V, is_causal=True)
        return np.nanmax(np.abs(out - p.want(c)))

    return not p.does(a.hard) and all(error(c) < p.tolerance for c in p.convoys)


def _asks_behind(p, a):
    """Layer 1 would look behind if there were no mask. Once its queries and keys are exchanged, all is right."""
    free = replace(p, causal=False)
    behind = (hard_weights(free, a, c, 0).diagonal(1)[1:] for c in p.convoys)  # of every row i the weight on i + 1
    return all((weights > 1 - RULE).all() for weights in behind) and 0 in right_after_change(exchange)(p, a)


TOGETHER = (
    Puzzle(
        "difference",
        "a function that returns two heads and W_O: (W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2), W_O, with each W_V (15, 1) "
        "and W_O (2, 1): each ship receives its own tons minus those of the ship in front, the pilot 0",
        (
            "You have programmed both heads already, in my_self and my_step.",
            "Each of them gives tons, which makes two columns side by side.",
            "W_O turns two columns into one. Which two numbers subtract?",
        ),
        want=_mix_own_and_front(1, -1),
        tolerance=0.2,
        d_v=(1, 1),
        joined=True,
        signs={
            "heads_added": _carries((1, 1), (0.5, 0.5)),
            "one_head_unused": _carries((1, 0), (0, 1), (-1, 0), (0, -1)),
            "heads_alike": _heads_alike,
            "attends_to_next": follows(
                lambda c: only((c.places > 0) & (c.places < c.n - 1), column(c.cargo - np.r_[c.cargo[1:], 0]))
            ),
        },
        among={"by_hand": ("*ABCDABC", "*AB")},
    ),
    Puzzle(
        "what_came_next",
        "a function that returns two layers: (W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2), with W_V1 (20, 20), W_V2 (20, 5), "
        "all with 20 rows, under a causal mask: each ship receives the flag behind the earlier ships of its flag, "
        "their mean if there are several; free where there is none",
        (
            "Which ship has my flag in front of it? Its own flag is wanted.",
            "A ship must know which flag sails in front of it. Which head of yours finds out? Where can it note that?",
            "Layer 1: W_V1[FLAG, NOTE] = np.eye(5). Layer 2 asks with the flag and is found by the note.",
        ),
        want=_flags_behind,
        tolerance=0.05,
        d_v=(20, 5),
        causal=True,
        layers=True,
        signs={
            "finds_the_copy": _both(_layer(0, in_front), _layer(1, _copies)),
            "note_handed_over": _both(_layer(1, _behind_copies), follows(_own_flag_again, 0.05)),
            "own_flag_noted": _both(_layer(0, itself), _layer(1, _copies)),
            "looks_behind": _asks_behind,
            "two_back": lambda p, a: [0] * _layer(0, lambda c: only(c.places > 1, back(c, 2)))(p, a),
            "nothing_noted": _writes(so=False),
            "note_mixed": _note_mixed,
            "flags_overwritten": _both(_writes(NOTE, so=False), _writes(FLAG)),
        },
        example=_induction,
        among={
            "fits": lambda flags: len(set(flags)) < len(flags),
            "by_hand": ("*ABCA", "*ABCDABC", "*DADBDCD", "*AAB", "*ABAA"),
            "notes": True,
        },
    ),
)
