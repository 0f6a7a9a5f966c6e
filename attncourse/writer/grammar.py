"""The language of lesson one_token_at_a_time, small enough to say of every sentence whether it is right.

A sentence is a subject, perhaps with something after it, and a verb that agrees with the subject: not with the noun
that stands nearer.

    the cat sleeps .    the old cats near the dog see the king today .    the cat that the dogs like runs .
"""

import math
import re

from ..engine.compare import RIGHT
from ..engine.run import Unfit

# In the singular, and in the plural.
NOUNS = (("cat", "dog", "king", "child", "farmer", "bird"), ("cats", "dogs", "kings", "children", "farmers", "birds"))
# A transitive verb has an object, an intransitive one has none; with a singular subject, and with a plural one.
TRANSITIVE = (("sees", "hears", "likes", "follows"), ("see", "hear", "like", "follow"))
INTRANSITIVE = (("sleeps", "runs", "sings", "waits"), ("sleep", "run", "sing", "wait"))
# By a letter each, what kind of words there are, and which.
_KINDS = {
    "d": ("article", ("the",)),
    "a": ("adjective", ("small", "old", "young", "happy")),
    "n": ("noun, singular", NOUNS[0]),
    "N": ("noun, plural", NOUNS[1]),
    "t": ("verb with an object, singular", TRANSITIVE[0]),
    "T": ("verb with an object, plural", TRANSITIVE[1]),
    "i": ("verb without, singular", INTRANSITIVE[0]),
    "I": ("verb without, plural", INTRANSITIVE[1]),
    "p": ("preposition", ("near", "behind")),
    "r": ("relative pronoun", ("that",)),
    "b": ("time", ("today", "often")),
    ".": ("period", (".",)),
}
KINDS = {letter: kind for letter, (kind, _) in _KINDS.items()}
CLASSES = {letter: words for letter, (_, words) in _KINDS.items()}
WORDS = tuple(word for words in CLASSES.values() for word in words)
CLASS = {word: letter for letter, words in CLASSES.items() for word in words}
_NOUN = "da?[nN]"
_RIGHT = re.compile(
    rf"da?n(p{_NOUN}|r(da?nt|da?NT)|rt{_NOUN})?(i|t{_NOUN})b?\."
    rf"|da?N(p{_NOUN}|r(da?nt|da?NT)|rT{_NOUN})?(I|T{_NOUN})b?\."
)


def grammatical(words):
    """Tell whether a list of words is a sentence of the language.

    It reads the kinds of words by a pattern, and shares nothing with `sentence`, which writes them.

    >>> grammatical("the cat that the dogs like sleeps .".split())
    True
    >>> grammatical("the cat that the dogs like sleep .".split())
    False
    """
    return bool(_RIGHT.fullmatch("".join(CLASS.get(word, "?") for word in words)))


def forms():
    """Return the kinds of words of every form of sentence, as letters of `CLASSES`.

    >>> len(forms()), "dni." in forms(), "dnI." in forms()
    (520, True, False)
    """
    nouns = ("dn", "dN", "dan", "daN")
    inner = ("rdnt", "rdNT", "rdant", "rdaNT")
    return tuple(
        subject + behind + verb + when + "."
        for subject in nouns
        for t, i in ("ti" if subject.endswith("n") else "TI",)
        for behind in ("", *inner, *("p" + noun for noun in nouns), *("r" + t + noun for noun in nouns))
        for verb in (i, *(t + noun for noun in nouns))
        for when in ("", "b")
    )


def sentence(rng):
    """Draw a sentence: return its words, and how surprising it is: -log of its probability, in nats."""
    surprise = 0.0

    def choose(options, weights=None):
        nonlocal surprise
        i = rng.choices(range(len(options)), weights)[0]
        surprise -= math.log(weights[i] / sum(weights) if weights else 1 / len(options))
        return options[i]

    def noun(plural):
        adjective = [choose(CLASSES["a"])] if choose((True, False), (2, 3)) else []
        return ["the", *adjective, choose(NOUNS[plural])]

    def any_noun():
        return noun(choose((False, True)))

    plural = choose((False, True))
    words = noun(plural)
    match choose(("alone", "near", "that the dogs see", "that sees the dogs"), (3, 3, 2, 2)):
        case "near":
            words += [choose(CLASSES["p"]), *any_noun()]
        case "that the dogs see":
            inner = choose((False, True))
            words += ["that", *noun(inner), choose(TRANSITIVE[inner])]
        case "that sees the dogs":
            words += ["that", choose(TRANSITIVE[plural]), *any_noun()]
    words += [choose(TRANSITIVE[plural]), *any_noun()] if choose((True, False)) else [choose(INTRANSITIVE[plural])]
    words += [choose(CLASSES["b"])] if choose((True, False), (3, 7)) else []
    return [*words, "."], surprise


REACH = 4  # tokens that two layers with a window of 3 look back: 2 * (3 - 1)


def _can_begin(kinds):
    return any(form.startswith(kinds) for form in forms())


def judge_beginning(words):
    """Judge a beginning whose verb should be out of reach."""
    if not isinstance(words, str):
        raise Unfit('Hand in one string with blanks between the words, for example "the cats that the dog sees".')
    words = words.split()
    if unknown := [word for word in words if word not in CLASS]:
        raise Unfit(
            f"Not a word of the grammar: {', '.join(unknown)}. Fix: choose from the 39 words of section 1, in lower "
            "case."
        )
    singular, plural = (grammatical([*words, verbs[0], "."]) for verbs in INTRANSITIVE)
    kinds = "".join(CLASS[word] for word in words)
    id = _not_open(kinds) if singular == plural else _told_in_reach(kinds)
    return id, BEGINNING_SAYS.get(id, "")


def _not_open(kinds):
    """Say why the main verb could not follow in both numbers."""
    if _can_begin(kinds):
        return "verb_not_due"
    with_another = (re.sub("(r[^tTiI]*)[tTiI]", rf"\g<1>{verb}", kinds, count=1) for verb in "tT")  # after "that"
    return "verb_after_that_unfit" if any(map(_can_begin, with_another)) else "no_sentence"


def _told_in_reach(kinds):
    """Say what in reach tells the number of the verb; RIGHT if nothing does."""
    subject = next(i for i, kind in enumerate(kinds) if kind in "nN")
    if len(kinds) - 1 - subject <= REACH:
        return "subject_in_reach"
    # The verb of "that see the dogs" agrees with the subject, too; that of "that the dog sees" does not.
    agrees = kinds.find("r") + 1 if "r" in kinds and kinds[kinds.find("r") + 1] in "tT" else None
    return "told_by_another_verb" if agrees is not None and len(kinds) - 1 - agrees <= REACH else RIGHT


BEGINNING_SAYS = {
    "verb_not_due": "A sentence can begin like this, but after your last word its main verb is not due: not yet, or it "
    "has been said.",
    "subject_in_reach": f"From your last word to the subject it is {REACH} places or fewer, so two layers reach it.",
    "told_by_another_verb": "The number of the subject can be read from the verb after “that”, which is in reach.",
    "no_sentence": "No sentence of the grammar begins like this: a noun has “the” and at most one adjective, only the "
    "subject has something after it, one phrase with “near”, “behind” or “that”, and a verb agrees with the noun that "
    "does it.",
    "verb_after_that_unfit": "It is always one with an object, and agrees with the noun that does it: “that the dog "
    "sees”, but “the cats that see the dog”.",
}
