// What all decks do. They are dark where the system is, or as ?theme=light or ?theme=dark says.
const theme = new URLSearchParams(location.search).get("theme");
if (theme) document.documentElement.dataset.theme = theme;

// A slide is measured with its own letters.
window.deckFonts = Promise.allSettled([...document.fonts].map((face) => face.load()));

// A slider in use keeps the arrow keys, Home and End. These keys turn the slides all the same, open the notes or ask
// for the number of a slide, and with them the slides get the other keys back.
const TURNS = ["PageDown", "PageUp", " ", "s", "g"];
window.addEventListener("keydown", ({ key }) => TURNS.includes(key) && document.activeElement?.matches("input") && document.activeElement.blur(), true);

// The speaker's window shows this slide and a preview of the next click. No script of theirs takes the keys from it.
const projector = parent !== window && parent.opener;
const preview = projector && !new URLSearchParams(location.search).has("postMessageEvents");
const { focus } = HTMLElement.prototype;
if (projector) HTMLElement.prototype.focus = () => {};

// A click on a choice chooses, and the slides have the keys again.
const blurred = () => document.activeElement?.matches("input[type=radio]:not(:focus-visible)") && document.activeElement.blur();
window.addEventListener("click", () => setTimeout(blurred));

// Home and End move the first slider of a slide, which has the keys from then on. They never turn slides.
const toEnd = (end) => () => {
  const slider = [...document.querySelectorAll(".present input[type=range]")].find((one) => one.getClientRects().length);
  if (!slider) return;
  if (!preview) focus.call(slider);
  slider.value = slider[end];
  slider.dispatchEvent(new Event("input", { bubbles: true }));
};
window.deckKeys = { 36: toEnd("min"), 35: toEnd("max") };

// What is moved or clicked in a picture of the projector is so in the speaker's window, too, and the other way round: the
// projector opened that window, and this slide there says that it is there.
const others = projector ? [projector] : [];
const post = (told) => others.forEach((other) => other.postMessage(JSON.stringify({ namespace: "attnlib", ...told }), "*"));
if (projector && !preview) post({ type: "here" });
let heard = false; // what is done here is what another window has told
const stills = () => [...document.querySelectorAll("[data-attnlib]")];
const tell = ({ type, target, clientX, clientY, isTrusted }) => {
  const still = target.closest?.("[data-attnlib]");
  if (!still || heard || (type === "click" && !isTrusted)) return;
  const at = [...still.querySelectorAll("*")].indexOf(target), box = target.getBoundingClientRect();
  const place = [(clientX - box.left) / box.width, (clientY - box.top) / box.height];
  post({ type, still: stills().indexOf(still), at, place, value: target.value });
};
for (const type of ["input", "click"]) window.addEventListener(type, tell, true);
window.addEventListener("message", ({ data, source }) => {
  const { namespace, type, still, at, place, value } = typeof data === "string" && data.startsWith("{") ? JSON.parse(data) : {};
  if (namespace === "attnlib" && type === "here") others.push(source);
  const target = namespace === "attnlib" && stills()[still]?.querySelectorAll("*")[at];
  if (!target) return;
  const box = target.getBoundingClientRect();
  if (type === "input" && target.type === "range") target.value = value;
  const where = { clientX: box.left + place[0] * box.width, clientY: box.top + place[1] * box.height };
  heard = true;
  target.dispatchEvent(type === "click" ? new MouseEvent(type, { bubbles: true, ...where }) : new Event(type, { bubbles: true }));
  heard = false;
});
