"""The symbols that Kokoro-82M v1.0 reads, and the numbers it knows them by."""

# A run of symbols is numbered upwards from its key. Number 0 pads both ends of the input.
_RUNS = {
    1: ";:,.!?",
    9: '—…"()“” ̃ʣʥʦʨᵝꭧAI',
    31: "O",
    33: "Q",
    35: "ST",
    39: "W",
    41: "Yᵊabcdef",
    50: "hijklmnopqrstuvwxyzɑɐɒæ",
    75: "βɔɕç",
    80: "ɖðʤə",
    85: "ɚɛɜ",
    90: "ɟ",
    92: "ɡ",
    99: "ɥ",
    101: "ɨɪʝ",
    110: "ɯɰŋɳɲɴø",
    118: "ɸθœ",
    123: "ɹ",
    125: "ɾɻ",
    128: "ʁɽʂʃʈʧ",
    135: "ʊʋ",
    138: "ʌɣɤ",
    142: "χʎ",
    147: "ʒʔ",
    156: "ˈˌː",
    162: "ʰ",
    164: "ʲ",
    169: "↓",
    171: "→↗↘",
    177: "ᵻ",
}

PAD = 0
LONGEST = 510
"""Symbols that fit into one run of the network."""

SYMBOLS = {
    symbol: first + index for first, run in _RUNS.items() for index, symbol in enumerate(run)
}
