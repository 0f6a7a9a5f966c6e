// Draws the picture of each slide as large as it fits, and shows the slides as 4:3 or 16:9, as the window is. In the
// address, ?ratio=4:3 or ?ratio=16:9 holds one of them, ?exercises=no leaves exercises out, ?print-pdf is for printing;
// ?name=, course= and date= stand on the cover, at=, where the notebooks are, on the last slide, and ?slides=1-9,12,11 shows these slides in this order.
const HEIGHT = 768;
const WIDTHS = { "4:3": 1024, "16:9": 1366 };
const LARGEST = 2.4, TABLE = 1.9, TEXT = 1.5, SMALLEST = 0.5, STEP = 0.02, GROWS = 0.01, AIRY = 12; // how much larger a picture is drawn, and words
const asked = new URLSearchParams(location.search);
const root = document.querySelector(".reveal");
// The window of the speaker gets it with the notes, which have half of it: this slide and, smaller, the next click, both
// in the ratio that the room sees. The rest is as reveal.js has it.
const speaker = (across, down) => `<style>
body[data-speaker-layout="default"] #current-slide { left: 0; width: 46vw; height: ${(46 * down) / across}vw }
body[data-speaker-layout="default"] #upcoming-slide { left: 0; top: ${(46 * down) / across + 1}vw; aspect-ratio: ${across / down}; width: auto; height: min(${(34 * down) / across}vw, 99vh - ${(46 * down) / across + 1}vw) }
:is(#current-slide, #upcoming-slide) iframe { width: 200%; height: 200%; scale: .5; transform-origin: 0 0 } /* else views are as on a phone */
#upcoming-slide iframe { pointer-events: none }
.overlay-element.label { display: none }
#speaker-layout { bottom: 10px; top: auto }
body[data-speaker-layout="default"] #speaker-controls { top: 0; width: 54%; height: 100%; font-size: 17px }
.speaker-controls-notes :is(.say, .do, .key)::before { font-size: 13px; font-weight: 700; margin-right: 6px }
.speaker-controls-notes .say::before { content: "SAY" }
.speaker-controls-notes .do::before { content: "DO" }
.speaker-controls-notes .key::before { content: "KEY" }
.speaker-controls-notes .key:empty { display: none }
.speaker-controls-notes pre { font-size: 14px; margin: 0 0 4px; white-space: pre-wrap }
.speaker-controls-notes .replies { font-size: 14px }
.speaker-controls-notes kbd { border: 1px solid; border-radius: 4px; font: inherit; padding: 0 4px }
.speaker-controls-notes .value { line-height: 1.25 !important }
.speaker-controls-notes .value :is(p, ul) { margin: 0 0 4px }
</style>`;
let width;

const ratio = () => asked.get("ratio") ?? (innerWidth < 1.5 * innerHeight && !asked.has("print-pdf") ? "4:3" : "16:9");

// Whether all of a slide is seen: its words, and its views, which would scroll by themselves.
function whole(body, picture) {
  const boxes = [body, ...picture.querySelectorAll(".attnlib-live")];
  return body.scrollHeight <= body.clientHeight && boxes.every((box) => box.scrollWidth <= box.clientWidth + 1);
}

// Returns how much larger the picture can be drawn, above or beside its sentence.
function zoom(body, picture, most) {
  const words = picture.querySelector(":scope > p, :scope > ul, :scope > .code");
  const large = picture.querySelector(":scope > table") || body.closest("[data-kind=exercise]:has(.code)");
  most ??= large ? TABLE : words ? TEXT : LARGEST;
  const fits = (step) => {
    picture.style.zoom = (SMALLEST + step * STEP).toFixed(2);
    return whole(body, picture);
  };
  fits(largest(0, Math.round((most - SMALLEST) / STEP), fits));
  return +picture.style.zoom;
}

// An x in a picture is 13 pixels high, of 768 of the slide, or as high as all words of its kind have room for. A plate
// grows with its words.
const LETTERS = 13;
const AIR = 0.12, CAPITAL = 0.74, BELOW = 0.18, MIDDLE = 0.36; // beside, above and below a line: shares of its size
const ratios = {};
const canvas = document.createElement("canvas").getContext("2d");
function tall(family) {
  canvas.font = `100px ${family}`;
  return (ratios[family] ??= canvas.measureText("x").actualBoundingBoxAscent / 100);
}

// What decides how large a text can be: where it stands, what it stands on, and what is as large as it.
function measured(text) {
  const { fontFamily, fontSize, textAnchor } = getComputedStyle(text), at = text.getScreenCTM();
  const { x, y, width: wide } = text.getBBox(), size = parseFloat(fontSize), pixels = size * Math.hypot(at.a, at.b);
  const shape = text.previousElementSibling, ground = shape?.getBoundingClientRect();
  const words = text.getBoundingClientRect(), round = shape?.matches("rect[rx], path[d*=Q]");
  const level = ground?.top < words.bottom && ground.bottom > words.top;
  const inside = level && ground.left <= words.left + 1 && ground.right >= words.right - 1;
  const plate = inside && round && ground.width < words.width + 2 * pixels ? shape : null;
  const figure = text.closest(".attnlib-figure");
  const grid = !figure && text.closest("g[pointer-events=none][text-anchor=middle]"); // numbers in the cells of a map
  const onCell = grid || text.matches(figure ? ":not(.attnlib-word)" : "[fill], [style*='fill:']");
  const moves = !figure && !grid && textAnchor === "middle" && /^-?[\d.]+$/.test(text.textContent);
  const role = plate ? "plate" : onCell ? (figure || grid || inside ? "cell" : "colour") : moves; // a coloured word is no number of a cell
  return {
    text, at, size, pixels, x, wide, plate, ground, words, air: onCell || moves || (figure && plate) ? AIR : 0,
    foot: text.y.baseVal[0]?.value ?? y + size,
    anchor: text.x.baseVal[0]?.value ?? x,
    cell: inside && !plate && onCell && shape.matches("rect, path") ? ground.width / Math.hypot(at.a, at.b) : Infinity,
    sinks: plate || onCell || textAnchor !== "middle", // it keeps its middle; others stand above or below something
    most: (LETTERS * (Reveal.isReady() ? Reveal.getScale() : 1)) / (pixels * tall(fontFamily)),
    kind: [figure ? "" : pixels.toFixed(), fontSize, role].join(),
    moves, // up and down, as on a bar
    turned: textAnchor === "middle" && Math.abs(at.a) < 0.001 * Math.abs(at.b), // the name of an axis, left of its words
    waits: !!text.closest("[visibility=hidden]"), // for an answer, and is never beside the rest
    frame: text.closest("section"),
  };
}

// How much wider and higher a plate is drawn: it is as high as its words, and long enough for them.
function grown({ ground, words, pixels }, larger) {
  const along = (side) => Math.max(1, (words[side] * larger + pixels / 2) / ground[side]);
  return ground.width > ground.height ? [along("width"), larger] : [larger, along("height")];
}

// The corners of a text, or of its plate, that is drawn `larger`, with some air around it.
function corners(word, larger, air = word.air) {
  const { at, size, pixels, x, wide, ground, foot, anchor } = word;
  const box = (left, top, right, bottom) => [[left, top], [right, top], [right, bottom], [left, bottom]];
  if (word.plate) {
    const times = grown(word, larger);
    const [across, down] = [ground.width, ground.height].map((side, k) => (side * (times[k] - 1)) / 2 + air * pixels);
    return box(ground.left - across, ground.top - down, ground.right + across, ground.bottom + down);
  }
  const base = foot + (word.sinks ? (larger - 1) * MIDDLE * size : 0), left = anchor + (x - anchor) * larger;
  const right = left + wide * larger, [top, bottom] = [base - CAPITAL * size * larger, base + BELOW * size * larger];
  const local = box(left - air * size, top, right + air * size, bottom);
  return local.map(([x, y]) => [at.a * x + at.c * y + at.e, at.b * x + at.d * y + at.f]);
}

// Whether two boxes meet: no side of either of them parts them.
function meet(one, other) {
  return [one, other].every((box) =>
    [1, 3].every((k) => {
      const side = [box[k][0] - box[0][0], box[k][1] - box[0][1]];
      const [a, b] = [one, other].map((points) => points.map(([x, y]) => x * side[0] + y * side[1]));
      return Math.max(...a) > Math.min(...b) && Math.max(...b) > Math.min(...a);
    }),
  );
}

// A box as it meets what may come to stand at its height.
const flat = (box) => box.map(([x], k) => [x, +(k > 1)]);

function within(box, frame) {
  const { left, right, top, bottom } = frame.getBoundingClientRect();
  return box.every(([x, y]) => x > left - 1 && x < right + 1 && y > top - 1 && y < bottom + 1);
}

function enlarge(section) {
  for (const plate of section.querySelectorAll(".picture [style*='scale:']")) plate.style.scale = "";
  for (const picture of section.querySelectorAll(".picture :is(.attnlib-figure, .attnlib-live)")) {
    const shown = (text) => text.getClientRects().length && text.textContent.trim();
    const texts = [...picture.querySelectorAll("svg text")].filter(shown);
    for (const text of texts) {
      text.style.fontSize = "";
      text.removeAttribute("dy");
    }
    const words = texts.map(measured), names = new Set(words.map(({ kind }) => kind));
    const kinds = [...names].map((name) => words.filter(({ kind }) => kind === name));
    for (const word of words) word.larger = 1;
    for (const word of words) {
      const far = corners(word, word.most), here = corners(word, 1, 0);
      const others = words.filter((other) => other !== word && other.waits === word.waits);
      const could = (other, at = (box) => box) =>
        meet(at(far), at(corners(other, other.most))) && !meet(at(here), at(corners(other, 1, 0)));
      word.near = others.filter((other) => could(other));
      const alike = others.filter(({ moves, kind }) => word.moves && moves && kind === word.kind);
      word.beside = alike.filter((other) => could(other, flat));
      word.bound = within(here, word.frame);
    }
    const free = (word) => {
      const box = corners(word, word.larger);
      if (word.wide * word.larger + 2 * AIR * word.size > word.cell) return false;
      if (word.bound && !within(box, word.frame)) return false;
      if (word.beside.some((other) => meet(flat(box), flat(corners(other, other.larger))))) return false;
      return !word.near.some((other) => meet(box, corners(other, other.larger)));
    };
    const set = (kind, larger) => kind.forEach((word) => (word.larger = larger));
    for (let growing = kinds; growing.length; )
      growing = growing.filter((kind) => {
        const { larger, most } = kind[0];
        if (larger >= most) return false;
        set(kind, Math.min(larger + GROWS, most));
        if (kind.every(free)) return true;
        set(kind, larger);
      });
    for (const word of words.filter(({ larger }) => larger > 1)) {
      const { text, plate, size, sinks, turned, larger } = word;
      text.style.fontSize = size * larger + "px";
      if (sinks || turned) text.setAttribute("dy", sinks ? (larger - 1) * MIDDLE * size : -BELOW * larger * size);
      if (!plate) continue;
      const sides = grown(word, larger), scale = plate.getScreenCTM().b ? sides.reverse() : sides; // one that is turned
      Object.assign(plate.style, { scale: scale.join(" "), transformBox: "fill-box", transformOrigin: "center" });
    }
    // A number that is not shown yet becomes as large as those beside it.
    for (const text of picture.querySelectorAll("svg text:empty"))
      text.style.fontSize = words.find(({ moves, text: { parentNode } }) => moves && parentNode === text.parentNode)?.text.style.fontSize ?? "";
  }
}

// A view whose parts stand below each other would be as wide as the slide: it is as wide as they are.
function gather(body, picture) {
  for (const live of picture.querySelectorAll(".attnlib-live")) {
    const { left, width } = live.getBoundingClientRect(), still = live.parentElement;
    const right = Math.max(...[...live.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect().right));
    if (width < 0.98 * picture.getBoundingClientRect().width || right - left > 0.98 * width) continue;
    still.style.width = (101 * (right - left)) / width + "%";
    if (body.scrollHeight > body.clientHeight) still.style.width = "";
  }
}

// A table that is as wide as it can be has its rows further apart, where there is room below.
function spread(body, picture) {
  const table = picture.querySelector(":scope > table");
  for (let air = AIRY; table && air >= 0; air -= 4) {
    table.style.setProperty("--air", `${air}px`);
    if (whole(body, picture)) return;
  }
}

// The largest of some numbers, from `low` on, that fits; `low` need not.
function largest(low, high, fits) {
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

// A vote and the table that answers it: the words are as large as they can be, and the table hardly smaller, never larger.
function voted(section, body, picture) {
  if (!picture.querySelector(":scope > table") || !body.querySelector(".vote")) return false;
  const fits = (how) => (size) => {
    section.style.setProperty("--asks", size + "px");
    for (const name of ["asks", "beside", "tight", "dense"]) section.classList.toggle(name, how.includes(name));
    picture.style.zoom = 0.045 * size;
    return whole(body, picture);
  };
  for (const [least, ...ways] of [[28, "asks", "asks beside"], [23, "asks tight", "asks tight beside"]]) {
    const [size, how] = ways.map((way) => [largest(least - 1, 36, fits(way)), way]).reduce((a, b) => (b[0] > a[0] ? b : a));
    if (size < least) continue;
    fits(how)(size);
    zoom(body, picture, size / 20);
    return true;
  }
  section.classList.remove("asks");
  return false;
}

function fit(section) {
  const body = section.querySelector(".body");
  const picture = section.querySelector("[data-kind]:not([data-kind=title]) .picture");
  section.classList.remove("roomy");
  if (!picture) {
    section.classList.toggle("dense", body.scrollHeight > body.clientHeight);
    return roomy(section, () => body.scrollHeight <= body.clientHeight);
  }
  for (const { style } of picture.children) {
    style.width = "";
    style.removeProperty("--air");
  }
  if (voted(section, body, picture)) return spread(body, picture);
  const least = picture.querySelector(".attnlib-live, .attnlib-figure, img") ? 1.5 : 1.2; // a table has letters as large as dense words
  const ways = ["", "dense", "dense tight"];
  const attempt = (how) => {
    for (const name of ["dense", "tight"]) section.classList.toggle(name, how.includes(name));
    section.classList.remove("beside");
    const below = zoom(body, picture);
    section.classList.toggle("beside", !!body.querySelector(".says, .question"));
    if (section.matches(".beside") && zoom(body, picture) <= 1.1 * below) {
      section.classList.remove("beside");
      picture.style.zoom = below;
    }
    return whole(body, picture) ? +picture.style.zoom : 0;
  };
  const found = [];
  for (const how of ways) if (!(found.at(-1) >= least)) found.push(attempt(how));
  const best = found.findIndex((size) => size >= Math.min(least, 0.98 * Math.max(...found))); // smaller words pay
  if (best < found.length - 1) attempt(ways[best]);
  if (section.matches(".dense.beside")) { // smaller words have made room for the picture, or not
    section.classList.remove("dense");
    section.classList.toggle("dense", !whole(body, picture));
  }
  gather(body, picture);
  roomy(section, () => whole(body, picture));
  spread(body, picture);
}

// Words are larger where all of a slide has room for it, but never than a table or code below them.
function roomy(section, fits) {
  const held = section.querySelector(".picture:has(> table, > .code)"), small = held && +held.style.zoom < TEXT;
  const column = root.matches(".narrow") && section.matches(".beside");
  section.classList.toggle("roomy", !small && !column && !section.matches(".dense, [data-kind=title]"));
  if (!fits()) section.classList.remove("roomy");
}

function measure(sections) {
  root.classList.add("measuring");
  sections.forEach((section) => (fit(section), enlarge(section)));
  root.classList.remove("measuring");
}

function lay() {
  if (width === WIDTHS[ratio()]) return;
  width = WIDTHS[ratio()];
  const slides = root.querySelector(".slides");
  slides.style.width = width + "px";
  root.classList.toggle("narrow", width === WIDTHS["4:3"]);
  measure(document.querySelectorAll(".slides > section"));
  if (Reveal.isReady()) Reveal.configure({ width });
}

// "1-3,8,6-" -> the elements that these numbers count, from 1; "" -> all.
const listed = (list, all) =>
  list.split(",").flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return all.slice(Math.max(first - 1, 0), last || undefined);
  });

window.addEventListener("load", async () => {
  await Promise.all([window.attnlib, window.deckFonts]);
  const about = ["name", "course", "date"].map((key) => asked.get(key)).filter(Boolean);
  document.getElementById("about").textContent = about.join(" · ");
  if (asked.has("at")) document.getElementById("at").textContent = asked.get("at");
  // A view that comes again has the answer that was given at the beginning, and until then its first one.
  const answers = [...document.querySelectorAll(".attnlib-fills:has(> span) button")];
  const again = answers.filter((answer) => answer.closest("[data-kind=again]")), shownAgain = again[0]?.closest("section");
  for (const answer of answers.filter((one) => !again.includes(one)))
    answer.addEventListener("click", () => {
      shownAgain?.classList.remove("nobody-guessed");
      again.find(({ textContent }) => textContent === answer.textContent)?.click();
    });
  shownAgain?.classList.add("nobody-guessed");
  again[0]?.click();
  for (const answer of answers) {
    const section = answer.closest("section") ?? shownAgain;
    answer.addEventListener("click", () => width && measure([section])); // the answer takes more room than the question
  }
  // A key answers for a room that has said nothing: the picture comes, and says of nobody what was guessed.
  for (const asks of new Set(answers.filter((one) => !again.includes(one)).map((one) => one.parentElement))) {
    const key = Object.assign(document.createElement("i"), { className: "fragment" }), section = asks.closest("section");
    section.querySelector(".body").append(key);
    section.querySelector(".notes .key:empty").innerHTML = "<kbd>→</kbd> the answer, for nobody";
    asks.addEventListener("click", () => key.matches(".visible") || key.remove());
    Reveal.on("fragmentshown", ({ fragment }) => {
      if (fragment !== key) return;
      asks.querySelector("button").click();
      for (const one of [section, shownAgain]) one?.classList.add("nobody-guessed");
      document.activeElement.blur(); // the arrow keys turn slides
    });
  }
  // What a slider or a click changes may take more room, too; and letters have the room of what is beside them now.
  for (const still of document.querySelectorAll("[data-attnlib]"))
    for (const type of ["input", "click"])
      still.addEventListener(type, () => {
        const section = still.closest("section"), body = section.querySelector(".body");
        if (!width) return;
        if (!whole(body, body.querySelector(".picture"))) return measure([section]);
        enlarge(section);
        const glides = still.getAnimations({ subtree: true }).map(({ finished }) => finished);
        if (glides.length) Promise.allSettled(glides).then(() => enlarge(section));
      });
  document.querySelectorAll("aside.notes").forEach((notes) => notes.insertAdjacentHTML("beforeend", speaker(...ratio().split(":"))));
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
  // A break says when it ends, from the moment at which its slide is shown.
  Reveal.on("slidechanged", ({ currentSlide }) => {
    const back = currentSlide.querySelector(".back:empty");
    if (back) back.textContent = "Back at " + new Date(Date.now() + back.dataset.minutes * 6e4).toTimeString().slice(0, 5);
  });
  window.addEventListener("resize", lay);
});
