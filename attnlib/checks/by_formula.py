"""Numbers that follow from a formula of notebooks 03 and 04; no code needed to find them."""

from .by_hand import number


def by_formula():
    """Return the exercises about scales, starting weights and parameter counts."""
    return (
        number(
            "score_std",
            "the standard deviation of the raw scores at d_k = 144, if all entries have mean 0 and variance 1",
            12.0,
            {"variance_instead_of_std": [144.0], "scaled_already": [1.0]},
            ("Variances of independent terms add up.", "A score has d_k terms of variance 1.", "The root of d_k."),
        ),
        number(
            "head_divisor",
            "what a layer with d_model = 768 and 12 heads divides its scores by",
            8.0,
            {
                "scale_by_embed_dim": [768**0.5],
                "scale_by_d_k": [64.0],
                "scale_by_num_heads": [12**0.5],
            },
            (
                "How many entries have the two vectors of one dot product?",
                "Twelve heads share 768 features.",
                "The root of 768 / 12.",
            ),
        ),
        number(
            "uniform_divisor",
            "the divisor that gives scores variance 1 at d_k = 36, if entries are uniform in -1 .. 1 (variance 1/3)",
            2.0,
            {
                "unit_variance_assumed": [6.0],
                "one_factor_counted": [12**0.5],
                "root_forgotten": [4.0],
                "scale_by_d_k": [36.0],
            },
            (
                "First the variance of one product of two entries.",
                "1/3 times 1/3, and 36 of them.",
                "The root of 36 / 9.",
            ),
        ),
        number(
            "linear_std",
            "the standard deviation of a fresh nn.Linear(768, 64).weight",
            (3 * 768) ** -0.5,
            {
                "xavier_assumed": [(2 / (768 + 64)) ** 0.5],
                "kaiming_assumed": [(2 / 768) ** 0.5],
                "bound_instead_of_std": [768**-0.5],
                "root_forgotten": [1 / (3 * 768)],
            },
            ("It depends on the number of inputs only.", "Uniform in +-1/sqrt(inputs).", "1 / sqrt(3 * inputs)."),
        ),
        number(
            "head_parameters",
            "the number of parameters in W_Q, W_K, W_V of one head that maps 512 features to 64, without bias",
            3.0 * 512 * 64,
            {"square_matrices_assumed": [3.0 * 512 * 512], "one_matrix_counted": [512.0 * 64]},
            ("A matrix has rows times columns.", "512 rows, 64 columns.", "Three such matrices."),
        ),
    )
