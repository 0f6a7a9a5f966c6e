"""Mistakes after the weights (output), before the scores (projections), and around it all (arrays, gradients)."""

from itertools import product

import numpy as np

from attnlib.core import softmax
from attnlib.heads import split_heads

from ..engine.steps import swap
from .mistake import Mistake, weights_by


def _first_head_columns(name, weight):
    """Project with the columns of head 0 for every head."""

    def step(s):
        matrix = getattr(s, weight)
        d_k = matrix.shape[-1] // s.num_heads
        return s.split(getattr(s, name) @ np.tile(matrix[:, :d_k], s.num_heads))

    return step


def flatten_last(x):
    return x.reshape(*x.shape[:-2], -1)


def _transposed(*weights):
    """Project by transposed matrices."""
    inputs = {"W_Q": "query", "W_K": "key", "W_V": "value"}
    return {inputs[w][0]: lambda s, w=w: s.split(getattr(s, inputs[w]) @ swap(getattr(s, w))) for w in weights}


def _transposed_output(s):
    return s.merge(s.output) @ swap(s.W_O)


def _batched(s):
    return s.q.ndim > (2 if s.num_heads is None else 3)


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
    Mistake("weights_returned").as_if(
        "it returns the attention weights, not the output",
        "(..., n_q, n_k) where (..., n_q, d_v) belongs.",
        "Which array have you not used yet?",
        "The values: multiply the weights by them before you return.",
        {"output": lambda s: s.weights, "projected": lambda s: s.weights},
        {"projected": lambda s: s.weights.mean(axis=-3)},
    ),
    Mistake("output_and_weights_exchanged").as_if(
        "it returns the weights first and the output second",
        "Whoever writes `output, weights = layer(x)` gets each under the name of the other.",
        "In which order are the two asked for?",
        "The output comes first: `return output, weights`.",
        {"output": lambda s: s.weights, "shown": lambda s: s.weights @ s.v},
        {"projected": lambda s: s.weights, "shown": lambda s: s.merge(s.output) @ s.W_O},
    ),
    Mistake("weights_transposed").as_if(
        "it multiplies the values by the transposed weights",
        "Runs where n_q = n_k; each output is a sum over queries, and its weights do not sum to 1.",
        "Output i belongs to query i. Which row or column of the weights does it use?",
        "Row i: weights @ values, without turning the weights.",
        {"output": lambda s: swap(s.weights) @ s.v},
    ),
    # --- projections
    Mistake("projections_unused").as_if(
        "it attends with inputs themselves: a projection, or all of them, is never applied",
        "What is not applied gets no gradient. Without W_Q and W_K the scores of self-attention are symmetric.",
        "Set W_Q to zero. Does your output change?",
        "It should. Queries are x @ W_Q, keys x @ W_K, values x @ W_V; go on with these three.",
        {"q": lambda s: s.split(s.query), "k": lambda s: s.split(s.key), "v": lambda s: s.split(s.value)},
        *({a: lambda s, b=b: s.split(getattr(s, b))} for a, b in (("q", "query"), ("k", "key"), ("v", "value"))),
    ),
    Mistake("projection_transposed").as_if(
        "it multiplies by a projection that is transposed",
        "An error where W is not square; where it is, the shapes are right and the numbers are not.",
        "x is (..., n, d_in). Which axis of W has to be d_in: the first or the second?",
        "The first, in x @ W. An nn.Linear stores the transpose and turns it by itself: call the layer.",
        _transposed("W_Q", "W_K", "W_V"),
        _transposed("W_Q", "W_K", "W_V") | {"projected": _transposed_output},
        {"projected": _transposed_output},
    ),
    Mistake("projections_shared").as_if(
        "one projection does the work of several",
        "Queries equal keys, or every head sees the same: parameters that should differ do not.",
        "Count: how many different matrices does your output depend on?",
        "Every projection needs its own: W_Q makes all queries, W_K all keys, W_V all values, with all their columns.",
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
    Mistake("context_ignored").as_if(
        "keys and values come from the same sequence as the queries: this is self-attention",
        "The other sequence can be replaced by anything; the output does not change.",
        "Which of your arrays depend on the second argument?",
        "Only the queries come from the first sequence: keys and values are both made of the other one.",
        {"k": lambda s: s.split(s.query @ s.W_K), "v": lambda s: s.split(s.query @ s.W_V)},
    ),
    Mistake("context_half_ignored").as_if(
        "the keys or the values, but not both, come from the same sequence as the queries",
        "A key and its value belong to one token; here they belong to two.",
        "Which of your arrays depend on the second argument? Should it be one, or two?",
        "Two: only the queries come from the first sequence, keys and values are both made of the other one.",
        {"k": lambda s: s.split(s.query @ s.W_K)},
        {"v": lambda s: s.split(s.query @ s.W_V)},
    ),
    Mistake("keys_for_values").as_if(
        "the keys do the work of the values, too",
        "What comes back is a mixture of labels, not of contents; the values are never read.",
        "Which array did you compare with the queries, and which one do you average?",
        "Compare with the keys, average the values.",
        {"output": lambda s: s.weights @ s.k},
        {"v": lambda s: s.split(s.key @ s.W_V)},
    ),
    Mistake("residual_added").as_if(
        "the queries are added to the output",
        "A Transformer block adds them around attention; attention itself returns the weighted sum alone.",
        "What would your output be if all values were 0?",
        "It should be 0. Return the weighted sum of the values and add nothing.",
        {"projected": lambda s: s.merge(s.output) @ s.W_O + s.query},
        {"output": lambda s: s.weights @ s.v + s.q},
        {"output": lambda s: s.weights @ s.v + s.query},
    ),
    # --- arrays
    Mistake("wrong_batch_axis").as_if(
        "it counts axes from the front or turns all of them round (.T), so that a batch axis shifts them",
        "Right for one sequence; with a batch an error, or wrong numbers if the axes happen to be equally long.",
        "Which axes stay where they are, whatever comes before them? Count from the other end.",
        "The last two stay: name them -1 and -2, and let .T alone.",
        {"scores": lambda s: s.q @ s.k.T},
        {"scores": lambda s: s.q @ np.swapaxes(s.k, 0, 1)},
        weights_by(lambda x, axis: softmax(x, 1) if axis == -1 else softmax(x, axis)),
        {"split": lambda s: lambda x: np.swapaxes(x.reshape(*x.shape[:-1], s.num_heads, -1), 0, 1)},
        {"split": lambda s: lambda x: np.stack(np.split(x, s.num_heads, axis=-1))},
        {"merge": lambda s: lambda x: flatten_last(np.swapaxes(x, 0, 1))},
    ),
    Mistake("dot_instead_of_matmul").as_if(
        "it multiplies with np.dot, which pairs every sequence of a batch with every other one",
        "Right for one sequence; with a batch an error, or a result with an axis too many.",
        "Which product of NumPy treats the axes in front as a stack of matrices?",
        "@ does, and so does np.matmul. Turn only the last two axes of the keys.",
        {"scores": lambda s: np.dot(s.q, s.k.T)},
        {"scores": lambda s: np.dot(s.q, swap(s.k))},
    ),
    Mistake("fixed_number_of_axes").as_if(
        "it expects a fixed number of axes",
        "Right either for one sequence or for a batch; with the other an error, or one axis is taken for another.",
        "Which of your lines names an axis by a number, or counts the axes? Count from the end: -1, -2.",
        "Swap axes -1 and -2, take sizes from shape[-1] and shape[-2], and let the axes in front be any number.",
        _only(_batched, "scores"),
        _only(lambda s: not _batched(s), "scores"),
        *(_only(lambda s, n=n: s.x.ndim == n, "split") for n in (2, 3)),
        *(_only(lambda s, n=n: s.x.ndim == n, "merge") for n in (3, 4)),
        {"split": _rows_as_sequences},
        raises=True,
    ),
    Mistake("as_many_keys_as_queries").as_if(
        "there were as many keys as queries",
        "Right in self-attention. With fewer or more keys an error: two lengths are taken for one.",
        "Which of your lines takes a length from query.shape, and uses it for keys or values?",
        "Take the length of each array from that array: n_q from the queries, n_k from the keys, or -1 in reshape.",
        _only(lambda s: s.q.shape[-2] == s.k.shape[-2], "scores"),
        raises=True,
    ),
    Mistake("mutates_input").as_if(
        "it writes into the arrays it was given",
        "The result is right, and the caller's data are spoiled: the same cell run twice gives two answers.",
        "Look for +=, -=, *=, /= and for [...] = on the left of an argument.",
        "Write x = x + y in place of x += y, or begin with a copy.",
    ),
    Mistake("mask_as_numbers").as_if(
        "the mask holds numbers, not True and False",
        "The next reader cannot know what 0 means. Of integers `~mask` makes -1 and -2, of floats an error.",
        "Print the dtype of your mask.",
        "It has to be bool: compare with <= or <, or add .astype(bool).",
    ),
    Mistake("returns_float16").as_if(
        "it returns half precision",
        "Three digits are left, and numbers above 65504 become inf.",
        "Print the dtype of what you return.",
        "Convert nothing on the way, and give no dtype.",
        {"finish": lambda s: lambda y: y if y.dtype == bool else y.astype(np.float16)},
    ),
    # --- seen in the results alone: engine/explain.py
    Mistake("constant_result").as_if(
        "every number of its result were the same, such as 0, whatever it is given",
        "Its result does not depend on the numbers that go in.",
        "Which line writes into the array that you return, and what does it write?",
        "np.zeros and np.ones only make room. And one number alone, divided by its sum, is always 1: over which axis?",
    ),
    Mistake("part_of_result").as_if(
        "it returns a part of the right result, and the rest is missing or left at 0",
        "What is there is right.",
        "If you have a loop: does `return` stand inside it, and with which number does it begin and end?",
        "Let it run over all, and return behind it. Without a loop: which slice cuts something off?",
    ),
    Mistake("rearranged").as_if(
        "it returns the right numbers in another order or another shape",
        "An axis is missing or one too many, two are exchanged, one is turned round, or the cuts lie elsewhere.",
        "Print the shape of your result beside the one asked for. Where does your code put the second number?",
        "Look at each [None], [::-1], .T, swapaxes and reshape. A reshape keeps the order in memory.",
    ),
    Mistake("factor").as_if(
        "it returns the right result, multiplied by one number",
        "A factor of -1 is a sign; one that changes with the sizes may come of a mean where a sum belongs.",
        "Which line multiplies or divides by a number that the formula does not have?",
        "Leave that number out, or put in the one that is missing.",
    ),
    Mistake("axis_added_up").as_if(
        "it returns the right result, added up or averaged along an axis",
        "Every number has gone into a sum with others.",
        "Which sum or mean comes last, and along which axis does it run?",
        "Leave it out. A sum without an axis adds up everything.",
    ),
    Mistake("function_of_result").as_if(
        "it returns a function of the right result, such as its logarithm, exponential, root or square, or 1 minus it",
        "Everything before that step is right.",
        "Take the first number that is asked for, and yours. Which key of a calculator leads from one to the other?",
        "That step is one too many, or its opposite is missing at the end.",
    ),
    Mistake("nearly_right").as_if(
        "it returns the right result to within 1 per cent",
        "Often something small is added, numbers are rounded on the way, or n - 1 stands for n.",
        "Which numbers in your code does the formula not have: an epsilon, round, a type of few digits?",
        "Leave them out. A division by 0 wants np.where, which leaves all other numbers alone.",
    ),
    Mistake("hides_too_much").as_if(
        "it hides keys that may be seen, and shows none that may not",
        "Every True is right, and some are missing.",
        "Take the first difference: which query is that, which key, and which part of your rule forbids it?",
        "Try the rule on the edges: the key itself, the first, the last, and < in place of <= or the other way round.",
    ),
    Mistake("shows_too_much").as_if(
        "it shows keys that may not be seen, and hides none that may",
        "Every False is right, and some are missing.",
        "Take the first difference: which query is that, which key, and which part of your rule should forbid it?",
        "Try the rule on the edges: the key itself, the first, the last, and < in place of <= or the other way round.",
    ),
    Mistake("another_each_time").as_if(
        "it gives another result each time, for the same arguments",
        "Called twice with the same numbers it does not return the same.",
        "What in your code draws at random, or is kept from one call to the next?",
        "No nn.Dropout and no random numbers; what a call changes must not outlast it.",
    ),
    Mistake("argument_ignored").as_if(
        "one of its arguments had no part in the result",
        "Another one in its place changes nothing.",
        "In which of your lines does each argument stand?",
        "Each has a part in the result. A number that you have written yourself may stand in its place.",
    ),
    # --- the first stage that differs: engine/locate.py
    Mistake("another_branch").as_if(
        "with a mask it does something else, too, than to hide keys",
        "The scale, the axis or the softmax differ from those without one.",
        "Compare the two branches of your function. Which step does only one of them have?",
        "Let one line treat the mask: block the scores, then go on as without one. All other lines are common to both.",
    ),
    Mistake("another_projection").as_if(
        "queries, keys or values are not those that the matrices make of the tokens",
        "What comes after the projections is right.",
        "With the right queries and keys your weights are right. What comes before them?",
        "Each projection is a product with a whole matrix, queries with W_Q, keys with W_K, values with W_V.",
    ),
    Mistake("heads_mixed_up").as_if(
        "several heads are split, mixed or merged in another way",
        "One head alone is right.",
        "Which axis do several heads add, and where does it stand?",
        "Split the features into heads, bring the head axis before the tokens, and undo both when merging.",
    ),
    Mistake("another_score").as_if(
        "the scores are something else than dot products of queries and keys",
        "They differ by more than a factor.",
        "Which query and which key meet in entry (i, j)?",
        "Before scaling, entry (i, j) is the dot product of row i of Q and row j of K.",
    ),
    Mistake("nan_at_extremes").as_if(
        "large scores, or a row without any key, are no numbers any more",
        "Ordinary ones come out right.",
        "Which row of which step holds the first NaN or inf?",
        "The softmax takes the scores minus the largest of each row; a row that a mask leaves no key gets 0.",
    ),
    Mistake("weights_no_shares").as_if(
        "the weights are no shares, or the output is multiplied by something",
        "Shares are positive, and those of a query sum to 1.",
        "What is the sum of each row of your weights?",
        "Take exp of each score, divide by the sum over the keys, and multiply the output by nothing.",
    ),
    Mistake("another_output").as_if(
        "the right weights do not make the output",
        "Up to the weights everything is right.",
        "What is done with the weights?",
        "Row i of the output is the sum of the rows of V, each times its weight in row i.",
    ),
    Mistake("other_weights_returned").as_if(
        "the weights that it returns are not those that make its output",
        "The output is right.",
        "What happens to the weights between mixing the values and `return`?",
        "Return the very weights that multiply V, one row for each query: each row sums to 1.",
    ),
    # --- of a module: engine/modules.py
    Mistake("another_layer").as_if(
        "a layer has another name, size or kind than is asked for",
        "The check puts weights of its own into the layers.",
        "Which names and sizes does the task give? Print your module: what does it hold?",
        "One nn.Linear for each name of the task, made in __init__, with the sizes given there.",
    ),
    Mistake("bias_lost").as_if(
        "a bias has no part in the output, or another than it should",
        "Every number is right as long as the biases are 0.",
        "Does each token go through the layer itself, or is it multiplied by its weight?",
        "Call the layers: q = self.W_Q(x). W_O comes last, on all rows.",
    ),
    Mistake("changes_in_training").as_if(
        "it gives other numbers in training mode",
        "In evaluation mode every number is right.",
        "Which of your layers do something else in training than in evaluation?",
        "nn.Dropout and norms over a batch do. The task has none.",
    ),
    # --- seen in an error and its line: engine/run.py
    Mistake("another_number_returned").as_if(
        "it returns another number of arrays than are asked for",
        "Whoever goes on with the result gets one thing for several, or several for one.",
        "What does the task ask you to return, and what stands behind your `return`?",
        "A comma there makes a tuple. Several arrays become one by np.stack or np.concatenate.",
    ),
    Mistake("mask_as_index").as_if(
        "a mask in square brackets had the very shape of what it picks from",
        "scores[~mask] = -np.inf is right only for such masks. One with an axis of size 1 raises an error.",
        "What is the shape of the mask, and what that of the scores?",
        "np.where (in torch masked_fill) stretches axes of size 1; an index does not.",
    ),
    Mistake("array_as_condition").as_if(
        "an array is asked whether it is true as a whole",
        "`if`, `and`, `or`, `not`, 0 <= x < n and Python's own max and min do that, and an array is neither.",
        "Which word or sign in that line needs one True or False, and gets an array?",
        "For arrays: np.where, & and | with brackets, x.max(axis=...). `is not None` asks whether there is one.",
    ),
    Mistake("none_not_handled").as_if(
        "something is None where an array or a number is needed",
        "An argument that may be left out is None then, and so is the result of a function without `return`.",
        "Which name in that line can be None?",
        "Ask first: if it is None, take what the task puts in its place.",
    ),
    Mistake("float_as_size").as_if(
        "a number with a decimal point stands where a whole one is needed",
        "In Python 8 / 2 is 4.0, and no axis has 4.0 entries.",
        "Which of your sizes is a quotient?",
        "// divides whole numbers and gives a whole one.",
    ),
    # --- gradients: every number is right
    Mistake("gradient_cut").as_if(
        "the gradient were cut: weights that make the output never hear of the loss",
        "Every number is right, and training leaves these weights where they started.",
        "Which line leaves torch for NumPy or plain numbers, or detaches?",
        "Stay in torch from the first projection to `return`: no detach, .data, .item, .numpy, no torch.no_grad.",
        *_gradients(1),
    ),
    Mistake("dead_row_poisons_gradients").as_if(
        "one query that may attend to no key made the gradient NaN",
        "Every number is right; after one step of training every number of these matrices is NaN.",
        "NaN turned into 0 stays NaN on the way back. How does -inf get into your scores: is it added, or filled in?",
        "Fill it in with masked_fill or torch.where, take the softmax, and only then turn NaN into 0.",
        *_gradients(2),
    ),
)
