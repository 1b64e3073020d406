"""The page: everything inside one file, text escaped, episodes readable."""

from __future__ import annotations

import base64

from had.reports import html
from had.reports.tables import Table

EPISODE = {
    "goal": "put a mug in <desk>.",
    "status": "won",
    "message": "",
    "turns": [
        {
            "turn": 1, "observation": "You see a desk 1.", "harness": "Turn 1 of 5.",
            "reply": "Thought: a\nAction: b", "effect": "no_effect", "failure": None,
            "is_available": False, "is_blocked": True, "is_new_state": False,
        },
        {
            "turn": 2, "observation": "Nothing happens.", "harness": "",
            "reply": "hm", "effect": "no_effect", "failure": "no_action",
            "is_available": False, "is_blocked": False, "is_new_state": True,
        },
    ],
}  # fmt: skip


def test_an_episode_reads_like_a_dialogue():
    assert html.episode_text(EPISODE).splitlines() == [
        "Task: put a mug in <desk>.",
        "End: won, 2 turns",
        "",
        "--- turn 1 ---",
        "You see a desk 1.",
        "[harness] Turn 1 of 5.",
        "> Thought: a",
        "> Action: b",
        "(no effect, not among the commands, blocked)",
        "",
        "--- turn 2 ---",
        "Nothing happens.",
        "> hm",
        "(no effect, no command: no action, new state)",
    ]


def test_text_is_escaped_everywhere():
    table = html.table(Table("a < b", ("<h>",), (("<c>",),), caption="x & y"))
    page = html.page("<title>", [html.heading("<head>"), table, html.folded("<s>", "<pre>")])
    for word in ("title", "head", "h", "c", "s", "pre"):
        assert f"&lt;{word}&gt;" in page
    assert "a &lt; b" in page and "x &amp; y" in page


def test_a_figure_is_part_of_the_page(tmp_path):
    (tmp_path / "a.png").write_bytes(b"picture")
    piece = html.figure(tmp_path / "a.png", 'the "curves"')
    assert base64.b64encode(b"picture").decode() in piece
    assert 'alt="the &quot;curves&quot;"' in piece
