// What all decks do: a slider in use keeps the arrow keys, Home and End. These keys turn the slides all the same, and with
// them the slides get the other keys back.
const TURNS = ["PageDown", "PageUp", " "];
window.addEventListener("keydown", ({ key }) => TURNS.includes(key) && document.activeElement?.matches("input") && document.activeElement.blur(), true);
