"""What the generated catalogue sells: families of products with their options, properties and prices."""

from __future__ import annotations

from dataclasses import dataclass

# Within a group no value is the fuzzy match of another, so that the right one has to be selected.
_COLOURS = ("black", "white", "navy", "red", "green", "grey", "pink", "brown", "purple", "yellow")
_METALS = ("silver", "gold", "black", "copper", "bronze")
_CLOTHES = ("small", "medium", "large", "xl", "xxl")
_SHOES = ("6", "7", "8", "9", "10", "11", "12")
_PACKS = ("single pack", "double pack", "triple pack", "family pack", "value box")
_SCENTS = ("lavender", "lemon", "coconut", "vanilla", "rose", "mint", "unscented")
_FLAVOURS = ("chocolate", "vanilla", "strawberry", "lemon", "coconut", "cinnamon", "honey", "peanut butter")
_BEDS = ("twin", "full", "queen", "king")
_CURTAINS = ("short", "medium", "long", "floor length")
_CABLES = ("3 feet", "6 feet", "10 feet", "25 feet")
_PHONES = ("for galaxy", "for pixel", "for xperia", "for nokia")


@dataclass(frozen=True)
class Family:
    """Products of one kind.

    Attributes:
        name: the kind, as titles say it.
        query: the search under which the shop files it.
        category: the department.
        path: the rest of the category path.
        properties: attributes that a product may have.
        options: option name -> values that a product may offer.
        prices: lowest and highest in dollars.
    """

    name: str
    query: str
    category: str
    path: str
    properties: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    prices: tuple[int, int]


_CLOTHING = ("machine washable", "long sleeve", "slim fit", "relaxed fit", "hand wash", "quick drying")
_FOOTWEAR = ("non slip", "rubber sole", "arch support", "memory foam", "water resistant", "lace closure")
_SKIN = ("cruelty free", "paraben free", "fragrance free", "sensitive skin", "natural ingredients")
_FOOD = ("gluten free", "sugar free", "non gmo", "dairy free", "low calorie", "individually wrapped")
_FURNITURE = ("easy assembly", "solid wood", "space saving", "heavy duty", "metal legs", "living room")
_BEDDING = ("super soft", "machine washable", "fade resistant", "easy care", "hypoallergenic")
_DEVICE = ("fast charging", "long lasting", "plug and play", "high definition", "noise cancelling")
_HAIR_BRUSH = ("non slip", "easy to use", "easy clean", "eco friendly", "long handle")
_HERBAL_TEA = ("caffeine free", "non gmo", "certified organic", "sugar free", "individually wrapped")
_OFFICE_CHAIR = ("lumbar support", "height adjustable", "easy assembly", "heavy duty", "high density")
_WINDOW_CURTAINS = ("machine washable", "blackout lining", "energy efficient", "easy care", "rod pocket")
_TABLE_LAMP = ("glass shade", "energy efficient", "easy assembly", "brushed nickel", "touch control")
_PHONE_CASE = ("wireless charging", "shock absorbing", "dust proof", "easy to install", "tempered glass")
_USB_CABLE = ("fast charging", "high speed", "gold plated", "heavy duty", "nylon braided")
_BLUETOOTH_SPEAKER = ("stereo sound", "water resistant", "long lasting", "hands free", "easy to carry")
_SMART_WATCH_BAND = ("stainless steel", "quick release", "easy to install", "water resistant", "adjustable")

FAMILIES = (
    Family("Running Shoes", "running shoes", "fashion", "Shoes › Athletic",
           _FOOTWEAR, {"color": _COLOURS, "size": _SHOES}, (30, 95)),
    Family("Ankle Boots", "women's boots", "fashion", "Shoes › Boots",
           _FOOTWEAR, {"color": _COLOURS, "size": _SHOES}, (40, 120)),
    Family("House Slippers", "slippers", "fashion", "Shoes › Slippers",
           _FOOTWEAR, {"color": _COLOURS, "size": _SHOES}, (12, 35)),
    Family("Hooded Sweatshirt", "hoodies", "fashion", "Clothing › Sweatshirts",
           _CLOTHING, {"color": _COLOURS, "size": _CLOTHES}, (18, 60)),
    Family("Cargo Pants", "cargo pants", "fashion", "Clothing › Pants",
           _CLOTHING, {"color": _COLOURS, "size": _CLOTHES}, (20, 55)),
    Family("Summer Dress", "dresses", "fashion", "Clothing › Dresses",
           _CLOTHING, {"color": _COLOURS, "size": _CLOTHES}, (15, 50)),
    Family("Rain Jacket", "jackets", "fashion", "Clothing › Jackets",
           _CLOTHING, {"color": _COLOURS, "size": _CLOTHES}, (35, 110)),
    Family("Face Cream", "face moisturizers", "beauty", "Skin Care › Face",
           _SKIN, {"size": _PACKS}, (8, 40)),
    Family("Body Lotion", "body lotions", "beauty", "Skin Care › Body",
           _SKIN, {"scent": _SCENTS, "size": _PACKS}, (7, 30)),
    Family("Bath Soap Bar", "soaps", "beauty", "Bath › Soaps",
           _SKIN, {"scent": _SCENTS}, (4, 18)),
    Family("Shampoo", "shampoos", "beauty", "Hair Care › Shampoo",
           _SKIN, {"scent": _SCENTS, "size": _PACKS}, (6, 28)),
    Family("Hair Brush", "hair brushes", "beauty", "Hair Care › Tools",
           _HAIR_BRUSH, {"color": _COLOURS}, (6, 22)),
    Family("Protein Bars", "protein bars", "grocery", "Snacks › Bars",
           _FOOD, {"flavor name": _FLAVOURS, "size": _PACKS}, (10, 35)),
    Family("Herbal Tea", "herbal teas", "grocery", "Beverages › Tea",
           _HERBAL_TEA, {"flavor name": _SCENTS, "size": _PACKS}, (5, 24)),
    Family("Oat Cookies", "cookies", "grocery", "Snacks › Cookies",
           _FOOD, {"flavor name": _FLAVOURS}, (4, 20)),
    Family("Almond Butter", "nut butters", "grocery", "Pantry › Spreads",
           _FOOD, {"flavor name": _FLAVOURS, "size": _PACKS}, (8, 26)),
    Family("Console Table", "console tables", "garden", "Furniture › Tables",
           _FURNITURE, {"color": _COLOURS}, (80, 240)),
    Family("Office Chair", "office chairs", "garden", "Furniture › Chairs",
           _OFFICE_CHAIR, {"color": _COLOURS}, (70, 260)),
    Family("Book Shelf", "bookcases", "garden", "Furniture › Shelves",
           _FURNITURE, {"color": _COLOURS}, (45, 180)),
    Family("Bed Sheet Set", "bed sheets", "garden", "Bedding › Sheets",
           _BEDDING, {"color": _COLOURS, "size": _BEDS}, (20, 75)),
    Family("Throw Blanket", "throw blankets", "garden", "Bedding › Blankets",
           _BEDDING, {"color": _COLOURS, "size": _BEDS}, (15, 60)),
    Family("Window Curtains", "curtains", "garden", "Decor › Curtains",
           _WINDOW_CURTAINS, {"color": _COLOURS, "size": _CURTAINS}, (14, 70)),
    Family("Table Lamp", "table lamps", "garden", "Decor › Lamps",
           _TABLE_LAMP, {"color": _METALS}, (20, 90)),
    Family("Phone Case", "phone cases", "electronics", "Phones › Cases",
           _PHONE_CASE, {"color": _COLOURS, "style": _PHONES}, (7, 25)),
    Family("USB Cable", "usb cables", "electronics", "Cables › USB",
           _USB_CABLE, {"color": _COLOURS, "size": _CABLES}, (5, 20)),
    Family("Wireless Earbuds", "earbuds", "electronics", "Audio › Headphones",
           _DEVICE, {"color": _COLOURS}, (18, 120)),
    Family("Bluetooth Speaker", "bluetooth speakers", "electronics", "Audio › Speakers",
           _BLUETOOTH_SPEAKER, {"color": _COLOURS}, (15, 110)),
    Family("Smart Watch Band", "watch bands", "electronics", "Wearables › Bands",
           _SMART_WATCH_BAND, {"color": _METALS, "size": _CLOTHES}, (6, 30)),
    Family("Power Bank", "power banks", "electronics", "Phones › Chargers",
           _DEVICE, {"color": _COLOURS}, (14, 65)),
    Family("Action Camera", "action cameras", "electronics", "Cameras › Video",
           _DEVICE, {}, (45, 320)),
)
