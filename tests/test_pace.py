"""How soon a reader has something to do, in words as `python -m tools.series` counts them."""

import pytest

from tools.series import find_notebook, pace

# Words of all texts that are not folded, and the share of them that may stand before the first exercise.
BUDGETS = {
    "scaling": (1620, 0.25),
    "multi_head": (2000, 0.42),
    "pytorch_module": (2340, 0.27),
    "masks": (1860, 0.38),
}
LONGEST_WAY = 350  # words without a prediction, a picture to try, or an exercise


@pytest.mark.parametrize("name", BUDGETS)
def test_there_is_soon_something_to_do_and_again(name):
    now, (words, share) = pace(find_notebook(name).source.read_text("utf-8")), BUDGETS[name]
    fix = f"{now} must stay within {words} words, {share} and {LONGEST_WAY}. Fix: fold, cut, or move an exercise up"
    assert now.words <= words and now.before_exercise <= share and now.longest_way <= LONGEST_WAY, fix


def test_words_are_counted_from_task_to_task():
    """What is folded counts nowhere, and the appendix in all words alone."""
    exercise = "# %% [markdown]\n# ### Exercise [[x]] · Title\n# three words more\n"
    folded = "# %% [markdown]\n# <details><summary>Answer</summary>\n# not counted\n# </details>\n"
    source = "# %% [markdown]\n# one two three **Try.** four\n# %%\nx = 1  # no text\n" + folded + exercise
    source += "# %% [markdown]\n# ## Appendix: checks\n#\n# six more words than there were before\n"
    all_words, share, way = pace(source)
    assert all_words == 5 + 8 + 3 + 7 and way == 8 and share == 5 / all_words
    assert pace(source.replace("three words", "words " * 400)).longest_way > 400
