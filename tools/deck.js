// What all decks do: after a drag the arrow keys turn the slides again.
window.addEventListener("pointerup", () => document.activeElement?.matches("input") && document.activeElement.blur());
