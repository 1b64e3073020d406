"""Colours as the reward sees them: `wine red` and `matte red` are compared by their first known word."""

from __future__ import annotations

# The vocabulary of the published rule. The order decides which word counts when a text holds several.
_WORDS = """
    alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy
    camel camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral
    cranberry cream crystal dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass
    gray green grey heather indigo ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon
    mauve merlot midnight mint mocha multicolor mushroom mustard natural navy nude olive orange peach pewter
    pink plum purple rainbow red rose royal rust sand sapphire seashell silver skull slate steel stone
    stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white wine yellow
"""
COLOUR_WORDS = tuple(_WORDS.split())


def normalise_colour(text: str) -> str:
    """The first colour word contained in an option value, else the value itself."""
    return next((word for word in COLOUR_WORDS if word in text), text)
