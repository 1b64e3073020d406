"""The shop in a web browser."""

from __future__ import annotations

import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest

from had.envs.webshop.env import WebShopEnv
from had.envs.webshop.generated import GeneratedShop
from had.envs.webshop.server import ShopServer
from had.envs.webshop.tasks import WebShopTasks

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def server() -> Iterator[ShopServer]:
    source = GeneratedShop()
    tasks = WebShopTasks(source, num_test=20, num_validation=5)
    with ShopServer(WebShopEnv(source), tasks, port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _get(server: ShopServer, path: str, **fields: object) -> str:
    address = server.address + path + (f"?{urlencode(fields, doseq=True)}" if fields else "")
    with urllib.request.urlopen(address) as answer:
        return str(answer.read().decode())


def _episode() -> list[str]:
    """Commands that buy what the first task asks for."""
    shop = GeneratedShop().open()
    goal = shop.goals[0]
    title = shop.catalogue.product(goal.asin).title
    clicks = [goal.asin.lower(), *goal.options, "buy now"]
    return [f"search[{title}]", *(f"click[{name}]" for name in clicks)]


def test_tasks_are_listed(server: ShopServer) -> None:
    page = _get(server, "")
    assert page.count("href='/webshop_mini/test/") == 20
    assert _get(server, "", split="validation").count("href='/webshop_mini/validation/") == 5


def test_an_address_holds_an_episode(server: ShopServer) -> None:
    commands = _episode()
    assert "Buy Now" in _get(server, "webshop_mini/test/00000", do=commands[:2])
    assert "class='button selected'" in _get(server, "webshop_mini/test/00000", do=commands[:3])
    assert "Reward 1.0000" in _get(server, "webshop_mini/test/00000", do=commands)


def test_the_search_box_continues_an_episode(server: ShopServer) -> None:
    page = _get(server, "webshop_mini/test/00000", do="search[lamp]", query="shoes <b>")
    assert "results page 1 for &quot;shoes &lt;b&gt;&quot;" in page
    assert "<b>&quot;" not in page
    assert "value='search[lamp]'" in page


def test_every_link_of_an_episode_can_be_followed(server: ShopServer) -> None:
    for number in range(len(_episode())):
        page = _get(server, "webshop_mini/test/00001", do=_episode()[:number])
        targets = [part.split("'")[0] for part in page.split("href='")[1:]]
        assert targets
        for target in targets:
            assert "<h" in _get(server, target.replace("&amp;", "&").lstrip("/"))


def test_other_addresses_are_not_found(server: ShopServer) -> None:
    for path in ("webshop_mini/test/99999", "favicon.ico", "?split=dev"):
        with pytest.raises(HTTPError, match="404"):
            _get(server, path)


def test_an_episode_in_a_real_browser(server: ShopServer, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(_BROWSERS)} is installed (apt-get install chromium)")
    address = f"{server.address}webshop_mini/test/00000?{urlencode({'do': _episode()[:3]}, doseq=True)}"
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    common = [browser, "--headless", "--no-sandbox", "--disable-gpu", profile]
    picture = tmp_path / "episode.png"
    subprocess.run(
        [*common, "--window-size=1200,900", f"--screenshot={picture}", address],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert picture.read_bytes().startswith(_PNG)
    assert picture.stat().st_size > 10_000  # an empty page of this size compresses to a few kilobytes
    shown = subprocess.run([*common, "--dump-dom", address], check=True, capture_output=True, timeout=120)
    assert "Buy Now" in shown.stdout.decode()
