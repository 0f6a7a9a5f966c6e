"""Draw what stands beside a link and above the README, with Chromium: docs/card.png, docs/readme_light.png, _dark.png.

    python -m tools.setup_env browser
    python -m tools.readme_picture

The README shows what the first page shows after a guess, and the card what it shows before. Numbers are the page's own.
"""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from lite import first_page

from .page import look
from .series import ROOT

CARD = """<!DOCTYPE html><meta charset="utf-8"><style>{look}
body {{ height: 630px; padding: 64px 64px 40px; position: relative; width: 1200px }}
h1 {{ font-size: 64px; letter-spacing: -.015em; line-height: 1.12; max-width: 12em }}
svg {{ bottom: 84px; left: 64px; overflow: visible; position: absolute; width: 1072px }}
text {{ fill: var(--ink); font-family: var(--serif) }}
p {{ bottom: 32px; color: var(--quiet); font-size: 24px; position: absolute }}
b {{ color: var(--ink); font-weight: 600; position: absolute; left: 980px; width: 200px }}
</style><h1>{title}</h1>{picture}<p>Guess first. Then see which words it looked at.<b>attnlib</b></p>"""
# Of the first page: the sentence and the answer, the story and the heads.
README = """.bar, .tabs, #share, .does, .ways, #course, footer, #look > h1, .tells { display: none !important }
body { width: 1200px } .wrap { padding: 24px 32px 32px } #look { padding: 0 } #scenes { padding-top: 24px }
.story { font-size: var(--s25) }"""


def main():
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = Path(folder)
        ways = dict.fromkeys(("read", "run", "teach", "decks"), "")
        first_page.write(site, [], ways, None)
        style = look("inter", "serif")
        page = CARD.format(look=style, title=first_page.TITLE, picture=first_page.first_sentence())
        (site / "card.html").write_text(page, "utf-8")
        chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        browser = playwright.chromium.launch(executable_path=chromium)
        shot = browser.new_page(viewport={"width": 1200, "height": 630}, color_scheme="light")
        shot.goto((site / "card.html").as_uri())
        keep(shot.screenshot(), ROOT / "docs" / "card.png")
        for theme in ("light", "dark"):
            how = {"color_scheme": theme, "reduced_motion": "reduce", "device_scale_factor": 1.5}
            shot = browser.new_page(viewport={"width": 1200, "height": 800}, **how)
            shot.goto((site / "index.html").as_uri())
            shot.locator("#guess button", has_text="Mary").click()
            shot.add_style_tag(content=README)
            shot.evaluate("dispatchEvent(new Event('resize'))")
            shot.wait_for_timeout(1500)
            keep(shot.locator(".wrap").screenshot(), ROOT / "docs" / f"readme_{theme}.png")
        browser.close()


def keep(png, path):
    """Write a picture in 256 colours."""
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"wrote {path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
