"""Answers of the lesson model_of_your_own, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch

import attnlib as al


def windows(at="starts[:, None] + np.arange(n)", x="tokens[at]", y="tokens[at + 1]", back="x, y"):
    """Return a cutter of windows from the lines a student would write."""

    def answer(tokens, starts, n):
        names = {"np": np, "tokens": tokens, "starts": starts, "n": n}
        for name, line in (("at", at), ("x", x), ("y", y)):
            names[name] = eval(line, names)
        return eval(back, names)

    return answer


def by_slices(tokens, starts, n):
    return np.array([tokens[s : s + n] for s in starts]), np.array([tokens[s + 1 : s + 1 + n] for s in starts])


def next_window(tokens, starts, n):
    return np.array([tokens[s : s + n] for s in starts]), np.array([tokens[s + n : s + 2 * n] for s in starts])


def one_longer(tokens, starts, n):
    both = np.stack([tokens[s : s + n + 1] for s in starts])
    return both[:, :-1], both[:, 1:]


def in_torch(tokens, starts, n):
    both = torch.as_tensor(tokens).unfold(0, n + 1, 1)[torch.as_tensor(starts)]
    return both[:, :-1], both[:, 1:]


def bits(z="logits - logits.max(-1, keepdims=True)", lp="z - np.log(np.exp(z).sum(-1, keepdims=True))", end=None):
    """Return bits a token from the lines a student would write."""
    end = end or "-np.take_along_axis(lp, targets[..., None], -1).mean() / np.log(2)"

    def answer(logits, targets):
        names = {"np": np, "al": al, "logits": logits, "targets": targets}
        for name, line in (("z", z), ("lp", lp)):
            names[name] = eval(line, names)
        names["picked"] = np.take_along_axis(names["lp"], targets[..., None], -1)[..., 0]
        return eval(end, names)

    return answer


def by_cross_entropy(logits, targets):
    flat = torch.as_tensor(logits).flatten(0, 1), torch.as_tensor(targets).flatten()
    return torch.nn.functional.cross_entropy(*flat) / np.log(2)


def in_a_loop(logits, targets):
    total = 0.0
    for rows, wanted in zip(logits, targets, strict=True):
        for z, t in zip(rows, wanted, strict=True):
            m = z.max()
            total += m + np.log(np.exp(z - m).sum()) - z[t]
    return total / targets.size / np.log(2)


def with_logaddexp(logits, targets):
    lp = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    i, j = np.indices(targets.shape)
    return -lp[i, j, targets].mean() / np.log(2)


def block(first="x + attention(norm_1(x), mask)", second="y + network(norm_2(y))"):
    def answer(x, mask, attention, network, norm_1, norm_2):
        names = dict(x=x, mask=mask, attention=attention, network=network, norm_1=norm_1, norm_2=norm_2, np=np)
        names["y"] = eval(first, names)
        return eval(second, names)

    return answer


def step_by_step(x, mask, attention, network, norm_1, norm_2):
    for part in (lambda y: attention(norm_1(y), mask), lambda y: network(norm_2(y))):
        x = x + part(x)
    return x


def copied(x, mask, attention, network, norm_1, norm_2):
    out = x.copy()
    out += attention(norm_1(out), mask)
    out += network(norm_2(out))
    return out


def one_line(x, mask, attention, network, norm_1, norm_2):
    return (found := x + attention(norm_1(x), mask)) + network(norm_2(found))


def written_over(x, mask, attention, network, norm_1, norm_2):
    x += attention(norm_1(x), mask)
    x += network(norm_2(x))
    return x


def writing(seen="t[-n:]", row="z[0, -1]", p="al.softmax(row / temperature)", new="draw(p)", end="t", rounds="count"):
    def answer(model, prompt, count, n, temperature, draw):
        names = {"np": np, "al": al, "t": list(prompt), "n": n, "temperature": temperature, "draw": draw}
        names |= {"prompt": prompt, "count": count}
        for _ in range(eval(rounds, names)):
            names["z"] = np.asarray(model(np.array(eval(seen, names))[None]))
            names["row"] = eval(row, names)
            names["p"] = eval(p, names)
            names["t"].append(eval(new, names))
        return eval(end, names)

    return answer


def never_appended(model, prompt, count, n, temperature, draw):
    t = list(prompt)
    for _ in range(count):
        t.append(draw(al.softmax(model(np.array(prompt[-n:])[None])[0, -1] / temperature)))
    return t


def with_arrays(model, prompt, count, n, temperature, draw):
    tokens = np.array(prompt)
    for _ in range(count):
        e = np.exp(model(tokens[None, -n:])[0, -1] / temperature)
        tokens = np.append(tokens, draw(e / e.sum()))
    return tokens


def with_tensors(model, prompt, count, n, temperature, draw):
    tokens = torch.tensor([prompt])
    for _ in range(count):
        logits = torch.as_tensor(model(tokens[:, -n:].numpy()))[0, -1]
        new = draw((logits / temperature).softmax(-1).numpy())
        tokens = torch.cat([tokens, torch.tensor([[new]])], dim=1)
    return tokens[0]


def handed(call):
    """Return a writing loop that gets its logits by `call(model, tokens)`, a line of a student."""

    def answer(model, prompt, count, n, temperature, draw):
        t = list(prompt)
        for _ in range(count):
            t.append(draw(al.softmax(call(model, t[-n:]) / temperature)))
        return t

    return answer


def again(model, prompt, count, n, temperature, draw):
    if count == 0:
        return prompt
    p = al.softmax(model(np.array([prompt[max(0, len(prompt) - n) :]]))[0, -1] / temperature)
    return again(model, [*prompt, draw(p)], count - 1, n, temperature, draw)


FIRST_NORMED = "norm_1(x) + attention(norm_1(x), mask)"

RIGHT = {
    "windows": [windows(), by_slices, one_longer, in_torch],
    "bits": [bits(), by_cross_entropy, in_a_loop, with_logaddexp],
    "block": [block(), step_by_step, copied, one_line],
    "write": [writing(), with_arrays, with_tensors, again],
}

WRONG = {
    "windows": {
        "targets_not_shifted": [windows(y="x")],
        "targets_elsewhere": [
            *(windows(y=f"tokens[at {by}]") for by in ("- 1", "+ 2")),
            next_window,
            *(windows(y=f"np.roll(x, -1, {axis})") for axis in (-1, 0)),
            windows(back="(y, x)"),
        ],
        None: [windows(y="tokens[starts + n]")],
        "windows_by_reshape": [windows(at="(np.arange(n)[:, None] + starts).reshape(len(starts), n)")],
        "argument_ignored": [windows(at="np.arange(len(starts) * n).reshape(len(starts), n)")],
        "window_one_short": [windows(back="(x[:, :-1], x[:, 1:])")],
    },
    "bits": {
        "nats_for_bits": [bits(end="-picked.mean()")],
        "factor": [
            bits(end="picked.mean() / np.log(2)"),
            bits(end="-picked.mean() / np.log(10)"),
            bits(end="-picked.mean() * np.log(2)"),
        ],
        "surprise_added_up": [
            bits(end=f"-{mean} / np.log(2)")
            for mean in ("picked.sum()", "picked.sum(-1).mean()", "picked[:, -1].mean()")
        ],
        "log_of_the_mean": [bits(end="-np.log2(np.exp(picked).mean())")],
        "target_not_asked": [
            bits(end="-lp.max(-1).mean() / np.log(2)"),
            bits(end="-(np.exp(lp) * lp).sum(-1).mean() / np.log(2)"),
            bits(end="-lp.mean() / np.log(2)"),
        ],
        "softmax_over_positions": [
            bits("logits - logits.max(1, keepdims=True)", "z - np.log(np.exp(z).sum(1, keepdims=True))")
        ],
        "exponential_too_large": [
            bits("logits", "np.log(np.exp(z) / np.exp(z).sum(-1, keepdims=True))"),
            bits(lp="np.log(np.exp(z) / np.exp(z).sum(-1, keepdims=True))"),
            *(bits(lp=f"np.log(al.softmax(logits) + {least})") for least in (1e-9, 1e-10)),
            bits("logits - logits.max()"),  # one maximum for all rows
        ],
        "logits_for_logarithms": [bits(end="-np.take_along_axis(logits, targets[..., None], -1).mean() / np.log(2)")],
    },
    "block": {
        "residual_lost": [
            block("attention(norm_1(x), mask)", "network(norm_2(y))"),
            block("attention(norm_1(x), mask)"),
            block(second="network(norm_2(y))"),
        ],
        "sum_of_the_normed": [
            block(FIRST_NORMED, "norm_2(y) + network(norm_2(y))"),
            block(FIRST_NORMED),
            block(second="norm_2(y) + network(norm_2(y))"),
            block("norm_1(x + attention(x, mask))", "norm_2(y + network(y))"),
        ],
        "parts_not_in_turn": [
            block(second="y + network(norm_2(x))"),
            block(second="y + network(norm_2(y - x))"),
            block(second="x + network(norm_2(y))"),
            block("x + network(norm_2(x))", "y + attention(norm_1(y), mask)"),
        ],
        "norm_left_out": [
            block("x + attention(x, mask)", "y + network(y)"),
            block("x + attention(x, mask)"),
            block(second="y + network(norm_1(y))"),
        ],
        "norms_exchanged": [block("x + attention(norm_2(x), mask)", "y + network(norm_1(y))")],
        "part_forgotten": [block(second="y"), block("x")],
        "first_of_batch_taken": [block("x + attention(norm_1(x), mask)[0]")],
        "mask_inverted": [block("x + attention(norm_1(x), ~mask)")],
        "argument_ignored": [block("x + attention(norm_1(x), mask | True)")],
        "mutates_input": [written_over],
        None: [block("x + attention(mask, norm_1(x))")],  # torch raises NotImplementedError: tried all the same
    },
    "write": {
        "other_tokens_seen": [writing("t[:n]"), writing("t[-1:]"), writing("t[-n + 1:]"), never_appended],
        "never_cropped": [writing("t")],
        "first_row_asked": [writing(row="z[0, 0]")],
        "no_row_chosen": [writing(row=row) for row in ("z[0]", "z[-1]", "z")],
        "no_batch_axis": [
            handed(lambda model, t: model(np.array(t))[0, -1]),
            handed(lambda model, t: model(np.array(t))[-1]),
        ],
        "logits_for_shares": [writing(p="row / temperature"), writing(p="row")],
        "temperature_misplaced": [
            writing(p=f"al.softmax({p}") for p in ("row * temperature)", "row)", "row) / temperature")
        ],
        "likeliest_taken": [writing(new="int(p.argmax())")],
        "wrong_number_written": [
            writing(rounds="count + 1"),
            writing(rounds="count - 1"),
            writing(end="t[len(prompt):]"),
        ],
        "softmax_over_positions": [writing(row="al.softmax(z[0] / temperature, axis=0)[-1]", p="row")],
        None: [writing(p="al.softmax(row / temperature**0.5)")],
    },
}

LEARNERS = {
    "windows": {
        "a slice of arrays": (None, windows(x="tokens[starts:starts + n]"), "Fix: a slice x[a:b] wants numbers"),
        "no column": (None, windows("starts + np.arange(n)"), "Fix: x[:, None] makes a column of (3,)"),
    },
    "bits": {"keepdims": (None, bits("logits - logits.max(-1)"), "Fix: (3, 5) lacks the last axis of (3, 5, 7)")},
}
