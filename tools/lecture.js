// Draws the picture of each slide as large as it fits, and shows the slides as 4:3 or 16:9, as the window is. In the
// address, ?ratio=4:3 or ?ratio=16:9 holds one of them, ?exercises=no leaves exercises out, ?print-pdf is for printing;
// ?name=, course= and date= stand on the cover, and ?slides=1-9,12,11 shows these slides in this order.
const HEIGHT = 768;
const WIDTHS = { "4:3": 1024, "16:9": 1366 };
const LARGEST = 2.4, TABLE = 1.8, TEXT = 1.4, SMALLEST = 0.5, STEP = 0.05; // how much larger a picture is drawn, and words
const asked = new URLSearchParams(location.search);
const root = document.querySelector(".reveal");
// The window of the speaker gets it with the notes, which have half of it; the rest is as reveal.js has it.
const SPEAKER = `<style>
body[data-speaker-layout="default"] :is(#current-slide, #upcoming-slide) { left: 0; width: 46% }
body[data-speaker-layout="default"] #current-slide { height: 56% }
body[data-speaker-layout="default"] #upcoming-slide { top: 56%; height: 44% }
body[data-speaker-layout="default"] #speaker-controls { top: 0; width: 54%; height: 100%; font-size: 17px }
.speaker-controls-notes .value { line-height: 1.3 !important }
.speaker-controls-notes .value :is(p, ul) { margin: 0 0 6px }
</style>`;
let width;

const ratio = () => asked.get("ratio") ?? (innerWidth < 1.5 * innerHeight && !asked.has("print-pdf") ? "4:3" : "16:9");

// Returns how much larger the picture can be drawn, above or beside its sentence.
function zoom(body, picture) {
  const words = picture.querySelector(":scope > p, :scope > ul");
  for (let zoom = picture.querySelector(":scope > table") ? TABLE : words ? TEXT : LARGEST; zoom > SMALLEST; zoom -= STEP) {
    picture.style.zoom = zoom;
    if (body.scrollHeight <= body.clientHeight && body.scrollWidth <= body.clientWidth) return zoom;
  }
  return SMALLEST;
}

// An x in a picture is 13 pixels high, of 768 of the slide, where the words then still stand apart.
const LETTERS = 13;
const ratios = {};
const canvas = document.createElement("canvas").getContext("2d");
function tall(family) {
  canvas.font = `100px ${family}`;
  return (ratios[family] ??= canvas.measureText("x").actualBoundingBoxAscent / 100);
}
function enlarge(section) {
  const scale = Reveal.isReady() ? Reveal.getScale() : 1;
  const texts = [...section.querySelectorAll(".picture svg text")].filter((text) => text.getClientRects().length);
  for (const text of texts) {
    text.style.fontSize = "";
    const { fontFamily, fontSize } = getComputedStyle(text), { a, b } = text.getScreenCTM();
    const larger = (LETTERS * scale) / (parseFloat(fontSize) * Math.hypot(a, b) * tall(fontFamily));
    if (larger > 1) text.style.fontSize = parseFloat(fontSize) * larger + "px";
  }
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const waits = texts.map((text) => !!text.closest("[visibility=hidden]")); // for an answer, and is never beside the rest
  const apart = section.querySelector(".attnlib-figure") ? 4 : -4; // pixels between numbers of cells; views leave room
  const across = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) + apart;
  const down = (a, b) => Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) - a.height / 4;
  const meet = (a, b) => a !== b && across(a, b) > 0 && down(a, b) > 0;
  texts.forEach((text, k) => {
    const slanted = text.getScreenCTM().b && text.getScreenCTM().a;
    if (text.style.fontSize && !slanted && boxes.some((box, l) => waits[k] === waits[l] && meet(boxes[k], box))) text.style.fontSize = "";
  });
}

function fit(section) {
  section.classList.remove("beside");
  const body = section.querySelector(".body");
  const picture = section.querySelector(".picture");
  if (!picture) return;
  const below = zoom(body, picture);
  if (!body.querySelector(".says, .question")) return;
  section.classList.add("beside");
  if (zoom(body, picture) > 1.1 * below) return;
  section.classList.remove("beside");
  picture.style.zoom = below;
}

function lay() {
  if (width === WIDTHS[ratio()]) return;
  width = WIDTHS[ratio()];
  const slides = root.querySelector(".slides");
  slides.style.width = width + "px";
  root.classList.add("measuring");
  document.querySelectorAll(".slides > section").forEach((section) => (fit(section), enlarge(section)));
  root.classList.remove("measuring");
  if (Reveal.isReady()) Reveal.configure({ width });
}

// "1-3,8,6-" -> the elements that these numbers count, from 1; "" -> all.
const listed = (list, all) =>
  list.split(",").flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return all.slice(Math.max(first - 1, 0), last || undefined);
  });

window.addEventListener("load", async () => {
  await window.attnlib;
  const about = ["name", "course", "date"].map((key) => asked.get(key)).filter(Boolean);
  document.getElementById("about").textContent = about.join(" · ");
  // A view that comes again has the answer that was given at the beginning, and until then its first one.
  const answers = [...document.querySelectorAll(".attnlib-fills:has(> span) button")];
  const again = answers.filter((answer) => answer.closest("[data-kind=again]"));
  for (const answer of answers.filter((one) => !again.includes(one)))
    answer.addEventListener("click", () => again.find(({ textContent }) => textContent === answer.textContent)?.click());
  again[0]?.click();
  document.querySelectorAll("aside.notes").forEach((notes) => notes.insertAdjacentHTML("beforeend", SPEAKER));
  document.activeElement.blur(); // the slider behind the answer takes the keys when somebody clicks it
  const chosen = listed(asked.get("slides") ?? "", [...document.querySelectorAll(".slides > section")]);
  if (chosen.length) root.querySelector(".slides").replaceChildren(...chosen);
  for (const svg of document.querySelectorAll(".attnlib-live svg")) svg.style.width = svg.viewBox.baseVal.width + "px";
  if (asked.get("exercises") === "no") document.querySelectorAll("[data-kind=exercise]").forEach((slide) => slide.remove());
  lay();
  Reveal.initialize({
    width,
    height: HEIGHT,
    margin: 0,
    center: false,
    hash: true,
    slideNumber: "c/t",
    keyboard: window.deckKeys,
    transition: "none",
    controls: false,
    scrollActivationWidth: null,
    pdfSeparateFragments: false,
    pdfMaxPagesPerSlide: 1,
    plugins: [RevealNotes],
  });
  window.addEventListener("resize", lay);
});
