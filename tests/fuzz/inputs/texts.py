"""Texts and numbers that programs take wrongly."""

from hypothesis import strategies as st

odd_texts = st.text(max_size=20) | st.sampled_from(
    (
        "",
        " ",
        "\0",
        "a\0b",
        "\x01\x7f",
        "\r\n",
        "\u202e",
        "\ufeff",
        "e\u0301",
        "\U0010ffff",
        "'\"\\`",
        "%00%zz",
        "../..",
        "{}",
        "null",
        "-1",
        "9" * 30,
        "x" * 1025,
        "\U0001f600" * 300,
    )
)
"""Texts that UTF-8 can hold."""

halves = st.sampled_from(("\ud800", "a\udfffb", "\udc00\ud800"))
"""Texts with half of a character, which escapes of JSON and YAML can name and UTF-8 cannot hold."""

odd_numbers = st.sampled_from(
    tuple(sign * (2**bits + more) for bits in (0, 7, 31, 32, 53, 63, 64, 100) for more in (-1, 0) for sign in (1, -1))
) | st.floats(width=32)
