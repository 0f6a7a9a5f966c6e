"""A button that loads the language model of lesson it_speaks into a browser, where there is no command line."""

import asyncio
import html
import sys

from ipywidgets import HTML, Button, HBox

from .. import smollm

ASK = f"{smollm.browser.MB} MB, once. Nothing is loaded before you press."
DONE = "Now run this cell again, and those below."


def fetch_button():
    """Return a button that loads the model, in a browser that does not have it; anywhere else None.

    >>> import sys
    >>> fetch_button() is None or sys.platform == "emscripten"
    True
    """
    if sys.platform != "emscripten" or not smollm.missing():
        return None
    button, said = Button(description="Load the model"), HTML(ASK)

    def tell(text):
        said.value = html.escape(text)

    async def load():
        try:
            await smollm.fetch(tell)
        except Exception as error:  # an error that leaves a task is never shown
            tell(f"{error}")
            button.disabled = False
        else:
            tell(f"{html.unescape(said.value)} {DONE}")

    def press(_):
        button.disabled = True
        button.task = asyncio.ensure_future(load())  # without a reference Python may collect the task

    button.on_click(press)
    return HBox([button, said])
