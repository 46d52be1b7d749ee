"""Address lines: a house number beside a street word, a post office box, a region and its code.

Street words are those of the US Postal Service's list that say little else, and the usual ones of
a few other languages. An address without any of them is not found.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from factory.data.identifiers.kinds import Kind

if TYPE_CHECKING:
    from factory.data.identifiers.rules import Rule

_WORDS = """Alley Annex Arcade Avenue Ave Bayou Beach Bend Bluff Bluffs Bottom Boulevard Blvd Branch
Bridge Brook Brooks Burg Burgs Bypass Camp Canyon Cape Causeway Center Centers Circle Circles Cliff
Cliffs Club Common Commons Corner Corners Course Court Courts Cove Coves Creek Crescent Crest
Crossing Crossroad Crossroads Curve Dale Dam Divide Drive Drives Dr Estate Estates Expressway
Extension Extensions Fall Falls Ferry Field Fields Flat Flats Ford Fords Forest Forge Forges Fork
Forks Fort Freeway Garden Gardens Gateway Glen Glens Green Greens Grove Groves Harbor Harbors Haven
Heights Highway Hwy Hill Hills Hollow Inlet Island Islands Isle Junction Junctions Key Keys Knoll
Knolls Lake Lakes Land Landing Lane Ln Light Lights Loaf Lock Locks Lodge Loop Mall Manor Manors
Meadow Meadows Mews Mill Mills Mission Motorway Mount Mountain Mountains Neck Orchard Oval Overpass
Park Parks Parkway Pkwy Parkways Pass Passage Path Pike Pine Pines Place Pl Plain Plains Plaza Point
Points Port Ports Prairie Radial Ramp Ranch Rapid Rapids Rest Ridge Ridges River Road Roads Rd Route
Row Run Shoal Shoals Shore Shores Skyway Spring Springs Spur Spurs Square Squares Sq Station
Stravenue Stream Street Streets St Summit Terrace Throughway Trace Track Trafficway Trail Trailer
Tunnel Turnpike Underpass Union Unions Valley Valleys Via Viaduct View Views Village Villages Ville
Vista Walk Walks Wall Way Ways Well Wells""".split()  # noqa: SIM905  a list would take 200 lines

_STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|"
    "NY|NC|ND|OH|OK|OR|PA|RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY|DC|PR|GU|VI|AS|MP|FM|MH|PW"
)


def patterns(rule: "Callable[..., Rule]") -> "tuple[Rule, ...]":
    """The rules, made by the function that compiles them."""
    name = r"(?:(?:[A-Z][\w'.-]*|\d{1,3}(?:st|nd|rd|th))\ {1,2}){1,4}"
    street = "|".join(_WORDS)
    return (
        rule(
            Kind.ADDRESS,
            rf"""(?<![\w.,/-])(?P<value>\d{{1,6}}[A-Za-z]?,?\ {{1,2}}
              (?:(?:N|S|E|W|NE|NW|SE|SW)\.?\ )?              {name}(?:{street})\b\.?
              (?:,?\ (?:Apt|Apartment|Suite|Ste|Unit|Floor|\#)\.?\ ?[\w-]{{1,6}})?)""",
            case=True,
        ),
        rule(
            Kind.ADDRESS,
            r"""\b(?P<value>(?:(?:USNS|USNV|USS|USCGC|PSC|Unit)\ {1,2}\w+(?:,?\ Box\ \d+)?,?
              \s{1,2})?              (?:FPO|APO|DPO),?\ A[AEP])\b""",
            case=True,
        ),
        rule(
            Kind.ADDRESS,
            r"\b(?P<value>(?:P\.?\ ?O\.?|(?:PSC|CMR|Unit)\ \d{3,5},?)\ ?Box\ {1,2}\d{1,7})",
            trigger="box",
        ),
        rule(
            Kind.ADDRESS,
            r"\b(?P<value>[A-ZÄÖÜ][\wäöüß-]*(?:stra(?:ß|ss)e|str\.|weg|platz|gasse|allee|laan|straat)"
            r"\ {1,2}\d{1,4}[a-z]?)\b",
            case=True,
        ),
        rule(
            Kind.ADDRESS,
            r"""(?<!\w)(?P<value>\d{1,4}(?:\ ?bis)?,?\ {1,2}
              (?:rue|avenue|boulevard|chemin|place|impasse|quai)
              \ {1,2}(?:(?:de|du|des|la|le|les|l'|d')\ ?){0,3}[A-ZÀ-Ý][\w'-]+)""",
            case=True,
        ),
        rule(
            Kind.ADDRESS,
            r"""\b(?P<value>(?:Calle|Avenida|Avda\.?|Paseo|Plaza|Via|Viale|Piazza|Rua)\ {1,2}
              (?:(?:de|del|la|las|los|di|della|da|do)\ ){0,3}
              [A-Z][\wÀ-ÿ'-]+(?:\ [A-Z][\wÀ-ÿ'-]+){0,3},?\ {1,2}\d{1,4})\b""",
            case=True,
        ),
        rule(
            Kind.ADDRESS, rf"\b(?:{_STATES}),?\ {{1,2}}(?P<value>\d{{5}}(?:-\d{{4}})?)\b", case=True
        ),
        rule(
            Kind.ADDRESS,
            r"\b(?P<value>(?:[A-Z]{1,2}\d[A-Z\d]?\ {1,2}\d[ABD-HJLNP-UW-Z]{2}))\b",
            case=True,
        ),
        rule(
            Kind.ADDRESS,
            r"""(?<![A-Za-z])(?:zip(?:[ _-]?code)?|post(?:al)?[ _-]?code|postalCode|plz)
              ["']?\ ?[:=]?\ {0,2}["']?
              (?P<value>(?=[\w-]*\d)[A-Z\d]{3,5}(?:[ -][A-Z\d]{3,4})?)\b""",
        ),
        rule(
            Kind.ADDRESS,
            r"""(?<![A-Za-z])address(?:\[\d+\])?\.(?:line(?:\[\d+\])?|text):\ ?
              (?P<value>[^\n]{3,120})""",
        ),
        rule(
            Kind.ADDRESS,
            r"""(?<![A-Za-z])(?:(?:home|street|mailing|patient|postal)[ _])?address["']?
              \ ?[:=]\ {0,2}["'\[]{0,2}(?P<value>(?=[^\n"]{0,80}\d)(?:[^\n".;]|\.(?!\s)){5,80})""",
        ),
    )
