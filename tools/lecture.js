// Draws the picture of each slide as large as it fits, and shows the slides as 4:3 or 16:9, as the window is. In the
// address, ?ratio=4:3 or ?ratio=16:9 holds one of them, ?exercises=no leaves exercises out, ?print-pdf is for printing.
const HEIGHT = 768;
const WIDTHS = { "4:3": 1024, "16:9": 1366 };
const LARGEST = 2.4, TEXT = 1.4, SMALLEST = 0.5, STEP = 0.05; // how much larger a picture is drawn, and a text in its place
const asked = new URLSearchParams(location.search);
const root = document.querySelector(".reveal");
let width;

const ratio = () => asked.get("ratio") ?? (innerWidth < 1.5 * innerHeight && !asked.has("print-pdf") ? "4:3" : "16:9");

// Returns how much larger the picture can be drawn, above or beside its sentence.
function zoom(body, picture) {
  for (let zoom = picture.querySelector(":scope > p, :scope > ul") ? TEXT : LARGEST; zoom > SMALLEST; zoom -= STEP) {
    picture.style.zoom = zoom;
    if (body.scrollHeight <= body.clientHeight && body.scrollWidth <= body.clientWidth) return zoom;
  }
  return SMALLEST;
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
  document.querySelectorAll(".slides > section").forEach(fit);
  root.classList.remove("measuring");
  if (Reveal.isReady()) Reveal.configure({ width });
}

window.addEventListener("load", async () => {
  await window.attnlib;
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
    transition: "none",
    controls: false,
    scrollActivationWidth: null,
    pdfSeparateFragments: false,
    pdfMaxPagesPerSlide: 1,
    plugins: [RevealNotes],
  });
  window.addEventListener("resize", lay);
});
