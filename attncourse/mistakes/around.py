"""Mistakes after the weights (output), before the scores (projections), and around it all (arrays, gradients)."""

from itertools import product

import numpy as np

from attnlib.core import softmax
from attnlib.heads import split_heads

from ..engine.steps import swap
from .mistake import Mistake, scaled_by, weights_by


def _first_head_columns(name, weight):
    """Project with the columns of head 0 for every head."""

    def step(s):
        matrix = getattr(s, weight)
        d_k = matrix.shape[-1] // s.num_heads
        return s.split(getattr(s, name) @ np.tile(matrix[:, :d_k], s.num_heads))

    return step


def flatten_last(x):
    return x.reshape(*x.shape[:-2], -1)


def _project_transposed(*weights):
    """Project by transposed matrices."""
    inputs = {"W_Q": "query", "W_K": "key", "W_V": "value"}
    return {inputs[w][0]: lambda s, w=w: s.split(getattr(s, inputs[w]) @ swap(getattr(s, w))) for w in weights}


def _transposed_output(s):
    return s.merge(s.output) @ swap(s.W_O)


def _has_batch_axis(s):
    return s.q.ndim > (2 if s.num_heads is None else 3)


def _over_axis_1(x, axis):
    return softmax(x, 1) if axis == -1 else softmax(x, axis)


def _only(fits, step):
    """Raise in a step unless `fits(steps)`."""

    def raising(s):
        if not fits(s):
            raise ValueError("axes do not match")
        return getattr(type(s).__mro__[1], step).func(s)  # of the right steps, which may have their own

    return {step: raising}


def _rows_as_sequences(s):
    """Split into heads what always has a batch axis: each token of a single sequence becomes one of its own."""
    return lambda x: split_heads(x if x.ndim > 2 else x[:, None], s.num_heads)


def _gradients(fault):
    """Return the ways in which some of W_Q, W_K, W_V, W_O get no gradient (1), or NaN (2)."""
    some = (np.array(which) for which in product((0, fault), repeat=4) if any(which))

    def step(which):
        # NaN comes from a query without a key: where no mask is tried there is none.
        return lambda s: which[: len(s.learning)] * (fault == 1 or s.mask is not None)

    return tuple({"gradient_fault": step(which)} for which in some)


SHARED = (
    # --- output
    Mistake(
        "weights_returned",
        behaves_as_if="it returns the attention weights, not the output",
        symptom="(..., n_q, n_k) where (..., n_q, d_v) belongs.",
        hint="Which array have you not used yet?",
        then="The values: multiply the weights by them before you return.",
        variants=(
            {"output": lambda s: s.weights, "projected": lambda s: s.weights},
            {"projected": lambda s: s.weights.mean(axis=-3)},
        ),
    ),
    Mistake(
        "output_and_weights_exchanged",
        behaves_as_if="it returns the weights first and the output second",
        symptom="Whoever writes `output, weights = layer(x)` gets each under the name of the other.",
        hint="In which order are the two asked for?",
        then="The output comes first: `return output, weights`.",
        variants=(
            {"output": lambda s: s.weights, "shown": lambda s: s.weights @ s.v},
            {"projected": lambda s: s.weights, "shown": lambda s: s.merge(s.output) @ s.W_O},
        ),
    ),
    Mistake(
        "weights_transposed",
        behaves_as_if="it multiplies the values by the transposed weights",
        symptom="Runs where n_q = n_k; each output is a sum over queries, and its weights do not sum to 1.",
        hint="Output i belongs to query i. Which row or column of the weights does it use?",
        then="Row i: weights @ values, without turning the weights.",
        variants=({"output": lambda s: swap(s.weights) @ s.v},),
    ),
    # --- projections
    Mistake(
        "projections_unused",
        behaves_as_if="it attends with inputs themselves: a projection, or all of them, is never applied",
        symptom="What is not applied gets no gradient. Without W_Q and W_K the scores of self-attention are symmetric.",
        hint="Set W_Q to zero. Does your output change?",
        then="It should. Queries are x @ W_Q, keys x @ W_K, values x @ W_V; go on with these three.",
        variants=(
            {"q": lambda s: s.split(s.query), "k": lambda s: s.split(s.key), "v": lambda s: s.split(s.value)},
            *({a: lambda s, b=b: s.split(getattr(s, b))} for a, b in (("q", "query"), ("k", "key"), ("v", "value"))),
        ),
    ),
    Mistake(
        "projection_transposed",
        behaves_as_if="it multiplies by a projection that is transposed",
        symptom="An error where W is not square; where it is, the shapes are right and the numbers are not.",
        hint="x is (..., n, d_in). Which axis of W has to be d_in: the first or the second?",
        then="The first, in x @ W. An nn.Linear stores the transpose and turns it by itself: call the layer.",
        variants=(
            _project_transposed("W_Q", "W_K", "W_V"),
            _project_transposed("W_Q", "W_K", "W_V") | {"projected": _transposed_output},
            {"projected": _transposed_output},
        ),
    ),
    Mistake(
        "projections_shared",
        behaves_as_if="one projection does the work of several",
        symptom="Queries equal keys, or every head sees the same: parameters that should differ do not.",
        hint="Count: how many different matrices does your output depend on?",
        then="Every projection needs its own: W_Q makes all queries, W_K all keys, W_V all values, with all their "
        "columns.",
        variants=(
            {"k": lambda s: s.split(s.key @ s.W_Q)},
            {"q": lambda s: s.split(s.query @ s.W_K)},
            {"k": lambda s: s.split(s.key @ s.W_Q), "v": lambda s: s.split(s.value @ s.W_Q)},
            {"v": lambda s: s.split(s.value @ s.W_K)},
            {
                "q": _first_head_columns("query", "W_Q"),
                "k": _first_head_columns("key", "W_K"),
                "v": _first_head_columns("value", "W_V"),
            },
        ),
    ),
    Mistake(
        "context_ignored",
        behaves_as_if="keys and values come from the same sequence as the queries: this is self-attention",
        symptom="The other sequence can be replaced by anything; the output does not change.",
        hint="Which of your arrays depend on the second argument?",
        then="Only the queries come from the first sequence: keys and values are both made of the other one.",
        variants=({"k": lambda s: s.split(s.query @ s.W_K), "v": lambda s: s.split(s.query @ s.W_V)},),
    ),
    Mistake(
        "context_half_ignored",
        behaves_as_if="the keys or the values, but not both, come from the same sequence as the queries",
        symptom="A key and its value belong to one token; here they belong to two.",
        hint="Which of your arrays depend on the second argument? Should it be one, or two?",
        then="Two: only the queries come from the first sequence, keys and values are both made of the other one.",
        variants=({"k": lambda s: s.split(s.query @ s.W_K)}, {"v": lambda s: s.split(s.query @ s.W_V)}),
    ),
    Mistake(
        "keys_for_values",
        behaves_as_if="the keys do the work of the values, too",
        symptom="What comes back is a mixture of labels, not of contents; the values are never read.",
        hint="Which array did you compare with the queries, and which one do you average?",
        then="Compare with the keys, average the values.",
        variants=({"output": lambda s: s.weights @ s.k}, {"v": lambda s: s.split(s.key @ s.W_V)}),
    ),
    Mistake(
        "residual_added",
        behaves_as_if="the queries are added to the output",
        symptom="A Transformer block adds them around attention; attention itself returns the weighted sum alone.",
        hint="What would your output be if all values were 0?",
        then="It should be 0. Return the weighted sum of the values and add nothing.",
        variants=(
            {"projected": lambda s: s.merge(s.output) @ s.W_O + s.query},
            {"output": lambda s: s.weights @ s.v + s.q},
            {"output": lambda s: s.weights @ s.v + s.query},
        ),
    ),
    # --- arrays
    Mistake(
        "wrong_batch_axis",
        behaves_as_if="it counts axes from the front or turns all of them round (.T), so that a batch axis shifts them",
        symptom="Right for one sequence; with a batch an error, or wrong numbers if the axes happen to be equally "
        "long.",
        hint="Which axes stay where they are, whatever comes before them? Count from the other end.",
        then="The last two stay: name them -1 and -2, and let .T alone.",
        variants=(
            {"scores": lambda s: s.q @ s.k.T},
            *(  # all that counts from the front at once, with a guarded softmax and a plain one
                {"scores": lambda s: s.q @ s.k.T} | scaled_by(lambda s: s.k.shape[1] ** -0.5) | weights_by(way)
                for way in (_over_axis_1, lambda x, axis: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True))
            ),
            {"scores": lambda s: s.q @ np.swapaxes(s.k, 0, 1)},
            weights_by(_over_axis_1),
            {"split": lambda s: lambda x: np.swapaxes(x.reshape(*x.shape[:-1], s.num_heads, -1), 0, 1)},
            {"split": lambda s: lambda x: np.stack(np.split(x, s.num_heads, axis=-1))},
            {"merge": lambda s: lambda x: flatten_last(np.swapaxes(x, 0, 1))},
            {"merge": lambda s: lambda x: np.swapaxes(x, 0, 1).reshape(x.shape[1], -1)},
            {"merge": lambda s: lambda x: np.concatenate(x, axis=-1)},
        ),
    ),
    Mistake(
        "dot_instead_of_matmul",
        behaves_as_if="it multiplies with np.dot, which pairs every sequence of a batch with every other one",
        symptom="Right for one sequence; with a batch an error, or a result with an axis too many.",
        hint="Which product of NumPy treats the axes in front as a stack of matrices?",
        then="@ does, and so does np.matmul. Turn only the last two axes of the keys.",
        variants=({"scores": lambda s: np.dot(s.q, s.k.T)}, {"scores": lambda s: np.dot(s.q, swap(s.k))}),
    ),
    Mistake(
        "fixed_number_of_axes",
        behaves_as_if="it expects a fixed number of axes",
        symptom="Right either for one sequence or for a batch; with the other an error, or one axis is taken for "
        "another.",
        hint="Which of your lines names an axis by a number, or counts the axes? Count from the end: -1, -2.",
        then="Swap axes -1 and -2, take sizes from shape[-1] and shape[-2], and let the axes in front be any number.",
        variants=(
            _only(_has_batch_axis, "scores"),
            _only(lambda s: not _has_batch_axis(s), "scores"),
            *(_only(lambda s, n=n: s.x.ndim == n, "split") for n in (2, 3)),
            *(_only(lambda s, n=n: s.x.ndim == n, "merge") for n in (3, 4)),
            {"split": _rows_as_sequences},
        ),
        raises=True,
    ),
    Mistake(
        "as_many_keys_as_queries",
        behaves_as_if="there were as many keys as queries",
        symptom="Right in self-attention. With fewer or more keys an error: two lengths are taken for one.",
        hint="Which of your lines takes a length from query.shape, and uses it for keys or values?",
        then="Take the length of each array from that array: n_q from the queries, n_k from the keys, or -1 in "
        "reshape.",
        variants=(_only(lambda s: s.q.shape[-2] == s.k.shape[-2], "scores"),),
        raises=True,
    ),
    Mistake(
        "mutates_input",
        behaves_as_if="it writes into the arrays it was given",
        symptom="The result is right, and the caller's data are spoiled: the same cell run twice gives two answers.",
        hint="Look for +=, -=, *=, /= and for [...] = on the left of an argument.",
        then="Write x = x + y in place of x += y, or begin with a copy.",
    ),
    Mistake(
        "mask_as_numbers",
        behaves_as_if="the mask holds numbers, not True and False",
        symptom="The next reader cannot know what 0 means. Of integers `~mask` makes -1 and -2, of floats an error.",
        hint="Print the dtype of your mask.",
        then="It has to be bool: compare with <= or <, or add .astype(bool).",
    ),
    Mistake(
        "returns_float16",
        behaves_as_if="it returns half precision",
        symptom="Three digits are left, and numbers above 65504 become inf.",
        hint="Print the dtype of what you return.",
        then="Convert nothing on the way, and give no dtype.",
        variants=({"finish": lambda s: lambda y: y if y.dtype == bool else y.astype(np.float16)},),
    ),
    # --- seen in the results alone: engine/explain.py
    Mistake(
        "constant_result",
        behaves_as_if="every number of its result were the same, such as 0, whatever it is given",
        symptom="Its result does not depend on the numbers that go in.",
        hint="Which line writes into the array that you return, and what does it write?",
        then="np.zeros and np.ones only make room. And one number alone, divided by its sum, is always 1: over which "
        "axis?",
    ),
    Mistake(
        "part_of_result",
        behaves_as_if="it returns a part of the right result, and the rest is missing or left at 0",
        symptom="What is there is right.",
        hint="If you have a loop: does `return` stand inside it, and with which number does it begin and end?",
        then="Let it run over all, and return behind it. Without a loop: which slice cuts something off?",
    ),
    Mistake(
        "rearranged",
        behaves_as_if="it returns the right numbers in another order or another shape",
        symptom="An axis is missing or one too many, two are exchanged, one is turned round, or the cuts lie "
        "elsewhere.",
        hint="Print the shape of your result beside the one asked for. Where does your code put the second number?",
        then="Look at each [None], [::-1], .T, swapaxes and reshape. A reshape keeps the order in memory.",
    ),
    Mistake(
        "factor",
        behaves_as_if="it returns the right result, multiplied by one number",
        symptom="A factor of -1 is a sign; one that changes with the sizes may come of a mean where a sum belongs.",
        hint="Which line multiplies or divides by a number that the formula does not have?",
        then="Leave that number out, or put in the one that is missing.",
    ),
    Mistake(
        "axis_added_up",
        behaves_as_if="it returns the right result, added up or averaged along an axis",
        symptom="Every number has gone into a sum with others.",
        hint="Which sum or mean comes last, and along which axis does it run?",
        then="Leave it out. A sum without an axis adds up everything.",
    ),
    Mistake(
        "function_of_result",
        behaves_as_if="it returns a function of the right result, such as its logarithm, exponential, root or square, "
        "or 1 minus it",
        symptom="Everything before that step is right.",
        hint="Take the first number that is asked for, and yours. Which key of a calculator leads from one to the "
        "other?",
        then="That step is one too many, or its opposite is missing at the end.",
    ),
    Mistake(
        "nearly_right",
        behaves_as_if="it returns the right result to within 1 per cent",
        symptom="Often something small is added, numbers are rounded on the way, or n - 1 stands for n.",
        hint="Which numbers in your code does the formula not have: an epsilon, round, a type of few digits?",
        then="Leave them out. A division by 0 wants np.where, which leaves all other numbers alone.",
    ),
    Mistake(
        "hides_too_much",
        behaves_as_if="it hides keys that may be seen, and shows none that may not",
        symptom="Every True is right, and some are missing.",
        hint="Take the first difference: which query is that, which key, and which part of your rule forbids it?",
        then="Try the rule on the edges: the key itself, the first, the last, and < in place of <= or the other way "
        "round.",
    ),
    Mistake(
        "shows_too_much",
        behaves_as_if="it shows keys that may not be seen, and hides none that may",
        symptom="Every False is right, and some are missing.",
        hint="Take the first difference: which query is that, which key, and which part of your rule should forbid it?",
        then="Try the rule on the edges: the key itself, the first, the last, and < in place of <= or the other way "
        "round.",
    ),
    Mistake(
        "another_each_time",
        behaves_as_if="it gives another result each time, for the same arguments",
        symptom="Called twice with the same numbers it does not return the same.",
        hint="What in your code draws at random, or is kept from one call to the next?",
        then="No nn.Dropout and no random numbers; what a call changes must not outlast it.",
    ),
    Mistake(
        "argument_ignored",
        behaves_as_if="one of its arguments had no part in the result",
        symptom="Another one in its place changes nothing.",
        hint="In which of your lines does each argument stand?",
        then="Each has a part in the result. A number that you have written yourself may stand in its place.",
    ),
    # --- the first stage that differs: engine/locate.py
    Mistake(
        "another_branch",
        behaves_as_if="with a mask it does something else, too, than to hide keys",
        symptom="The scale, the axis or the softmax differ from those without one.",
        hint="Compare the two branches of your function. Which step does only one of them have?",
        then="Let one line treat the mask: block the scores, then go on as without one. All other lines are common to "
        "both.",
    ),
    Mistake(
        "another_projection",
        behaves_as_if="queries, keys or values are not those that the matrices make of the tokens",
        symptom="What comes after the projections is right.",
        hint="With the right queries and keys your weights are right. What comes before them?",
        then="Each projection is a product with a whole matrix, queries with W_Q, keys with W_K, values with W_V.",
    ),
    Mistake(
        "heads_mixed_up",
        behaves_as_if="several heads are split, mixed or merged in another way",
        symptom="One head alone is right.",
        hint="Which axis do several heads add, and where does it stand?",
        then="Split the features into heads, bring the head axis before the tokens, and undo both when merging.",
    ),
    Mistake(
        "another_score",
        behaves_as_if="the scores are something else than dot products of queries and keys",
        symptom="They differ by more than a factor.",
        hint="Which query and which key meet in entry (i, j)?",
        then="Before scaling, entry (i, j) is the dot product of row i of Q and row j of K.",
    ),
    Mistake(
        "nan_at_extremes",
        behaves_as_if="large scores, or a row without any key, are no numbers any more",
        symptom="Ordinary ones come out right.",
        hint="Which row of which step holds the first NaN or inf?",
        then="The softmax takes the scores minus the largest of each row; a row that a mask leaves no key gets 0.",
    ),
    Mistake(
        "weights_no_shares",
        behaves_as_if="the weights are no shares, or the output is multiplied by something",
        symptom="Shares are positive, and those of a query sum to 1.",
        hint="What is the sum of each row of your weights?",
        then="Take exp of each score, divide by the sum over the keys, and multiply the output by nothing.",
    ),
    Mistake(
        "another_output",
        behaves_as_if="the right weights do not make the output",
        symptom="Up to the weights everything is right.",
        hint="What is done with the weights?",
        then="Row i of the output is the sum of the rows of V, each times its weight in row i.",
    ),
    Mistake(
        "other_weights_returned",
        behaves_as_if="the weights that it returns are not those that make its output",
        symptom="The output is right.",
        hint="What happens to the weights between mixing the values and `return`?",
        then="Return the very weights that multiply V, one row for each query: each row sums to 1.",
    ),
    # --- of a module: engine/modules.py
    Mistake(
        "another_layer",
        behaves_as_if="a layer has another name, size or kind than is asked for",
        symptom="The check puts weights of its own into the layers.",
        hint="Which names and sizes does the task give? Print your module: what does it hold?",
        then="One nn.Linear for each name of the task, made in __init__, with the sizes given there.",
    ),
    Mistake(
        "bias_lost",
        behaves_as_if="a bias has no part in the output, or another than it should",
        symptom="Every number is right as long as the biases are 0.",
        hint="Does each token go through the layer itself, or is it multiplied by its weight?",
        then="Call the layers: q = self.W_Q(x). W_O comes last, on all rows.",
    ),
    Mistake(
        "changes_in_training",
        behaves_as_if="it gives other numbers in training mode",
        symptom="In evaluation mode every number is right.",
        hint="Which of your layers do something else in training than in evaluation?",
        then="A norm over the batch does, such as nn.BatchNorm1d. The task has none.",
    ),
    # --- seen in an error and its line: engine/run.py
    Mistake(
        "too_many_returned",
        behaves_as_if="it returns more than is asked for",
        symptom="Whoever continues with the result gets a tuple in place of an array, or one thing too many.",
        hint="What does the task ask you to return, and what stands behind your `return`?",
        then="A comma there makes a tuple. Return what the task names, and nothing else.",
    ),
    Mistake(
        "too_few_returned",
        behaves_as_if="it returns less than is asked for",
        symptom="Whoever unpacks the result gets an error, or takes rows of the first array for the others.",
        hint="What does the task ask you to return, and what stands behind your `return`?",
        then="All of it stands behind one `return`, in the order of the task, with commas between.",
    ),
    Mistake(
        "mask_as_index",
        behaves_as_if="a mask in square brackets had the very shape of what it picks from",
        symptom="scores[~mask] = -np.inf is right only for such masks. One with an axis of size 1 raises an error.",
        hint="What is the shape of the mask, and what that of the scores?",
        then="np.where (in torch masked_fill) stretches axes of size 1; an index does not.",
    ),
    Mistake(
        "array_as_condition",
        behaves_as_if="an array is asked whether it is true as a whole",
        symptom="`if`, `and`, `or`, `not`, 0 <= x < n and Python's own max and min do that, and an array is neither.",
        hint="Which word or sign in that line needs one True or False, and gets an array?",
        then="For arrays: np.where, & and | with brackets, x.max(axis=...). `is not None` asks whether there is one.",
    ),
    Mistake(
        "none_not_handled",
        behaves_as_if="something is None where an array or a number is needed",
        symptom="An argument that may be left out is None then, and so is the result of a function without `return`.",
        hint="Which name in that line can be None?",
        then="Ask first: if it is None, take what the task puts in its place.",
    ),
    Mistake(
        "float_as_size",
        behaves_as_if="a number with a decimal point stands where a whole one is needed",
        symptom="In Python 8 / 2 is 4.0, and no axis has 4.0 entries.",
        hint="Which of your sizes is a quotient?",
        then="// divides whole numbers and gives a whole one.",
    ),
    # --- gradients: every number is right
    Mistake(
        "gradient_cut",
        behaves_as_if="the gradient were cut: weights that make the output never hear of the loss",
        symptom="Every number is right, and training leaves these weights where they started.",
        hint="Which line leaves torch for NumPy or plain numbers, or detaches?",
        then="Stay in torch from the first projection to `return`: no detach, .data, .item, .numpy, no torch.no_grad.",
        variants=tuple(_gradients(1)),
    ),
    Mistake(
        "dead_row_poisons_gradients",
        behaves_as_if="one query that may attend to no key made the gradient NaN",
        symptom="Every number is right; after one step of training every number of these matrices is NaN.",
        hint="NaN turned into 0 stays NaN on the way back. How does -inf get into your scores: is it added, or filled "
        "in?",
        then="Fill it in with masked_fill or torch.where, take the softmax, and only then turn NaN into 0.",
        variants=tuple(_gradients(2)),
    ),
)
