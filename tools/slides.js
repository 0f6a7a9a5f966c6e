// Breaks the cells into slides of 1024 x 768 by measuring them here, with the fonts of this machine.
const LARGER = 1.5; // a picture is drawn this much larger than in the notebook where there is room,
const SHRINK = 0.6; // and may become this much smaller again before it gets a slide of its own
const ZOOMS = [1.5, 1.4, 1.3, 1.2, 1.1, 1, 0.9, 0.8, 0.7, 0.6]; // of a picture with a slider; below 1.1 on its own slide
const slides = document.querySelector(".slides");
slides.parentElement.classList.add("paging");
let section;

function open(title) {
  section = document.createElement("section");
  if (title) {
    const again = title.cloneNode(true);
    again.classList.add("again");
    again.removeAttribute("id");
    section.append(again);
  }
  slides.append(section);
}

const title = () => [...section.querySelectorAll(":scope > h1, :scope > h2, :scope > h3")].pop();
const fits = () => section.scrollHeight <= section.clientHeight;
const scrolls = (block) => [section, ...block.querySelectorAll("div")].some((each) => each.scrollWidth > each.clientWidth + 1);
const hasOnly = (block) => [...section.children].every((child) => child === block || child.matches("h1, h2, h3, .live"));

// Moves rows, items or lines from the end of a block to a copy of it until the slide fits; returns the copy.
function cut(block) {
  const rest = block.cloneNode(true);
  const parts = (b) => [...(b.querySelector("tbody") || b).children];
  if (block.matches("pre.printed")) {
    const lines = block.textContent.split("\n");
    let n = lines.length;
    while (!fits() && n > 1) block.textContent = lines.slice(0, --n).join("\n");
    rest.textContent = lines.slice(n).join("\n");
    return n < lines.length ? rest : null;
  }
  if (block.matches(".code")) {
    // Between two lines no word may be open that has a style.
    const pre = block.querySelector("pre"), lines = pre.innerHTML.split("\n"), whole = (n) => lines.slice(0, n).join("\n");
    const closed = (n) => whole(n).split("<span").length === whole(n).split("</span").length;
    let n = lines.length;
    while (!fits() && n > 1) {
      do n--; while (n > 1 && !closed(n));
      pre.innerHTML = whole(n);
    }
    rest.querySelector("pre").innerHTML = lines.slice(n).join("\n");
    return n < lines.length ? rest : null;
  }
  if (!block.matches("table, ul, ol")) return null;
  let n = parts(block).length;
  const all = n;
  while (!fits() && n > 1) parts(block)[--n].remove();
  parts(rest).slice(0, n).forEach((part) => part.remove());
  if (block.matches("ol")) rest.start = (block.start || 1) + n;
  return n < all ? rest : null;
}

// A line that ends in a colon goes with what follows, code with what it prints, a picture with where it is live.
function announces(before, block) {
  if (!before) return false;
  if (before.matches(".live")) return true;
  return before.matches("p") ? before.textContent.trim().endsWith(":") : before.matches(".code") && block.matches(".printed");
}

function place(block) {
  section.append(block);
  if (block.matches(".attnlib-still, .attnlib-figure")) {
    const zoom = ZOOMS.find((zoom) => {
      block.style.zoom = zoom;
      return fits() && !scrolls(block) && (zoom > 1 || hasOnly(block));
    });
    if (zoom || hasOnly(block)) return;
  } else if (fits()) return;
  if (block.matches("img")) {
    const share = 1 - (section.scrollHeight - section.clientHeight + 1) / block.clientHeight;
    if (share >= SHRINK || (share > 0 && hasOnly(block))) {
      block.style.width = Math.floor(block.clientWidth * share) + "px";
      return;
    }
  }
  const moved = [block];
  while (announces(moved[0].previousElementSibling, moved[0])) moved.unshift(moved[0].previousElementSibling);
  if (moved[0].previousElementSibling && !moved[0].previousElementSibling.matches("h1, h2, h3")) {
    moved.forEach((each) => each.remove());
    open(title());
    moved.forEach(place);
    return;
  }
  let rest = cut(block);
  if (!rest && !hasOnly(block)) {
    rest = block;
    block.remove();
  }
  if (rest) {
    open(title());
    place(rest);
  }
}

window.addEventListener("load", async () => {
  await Promise.all([window.attnlib, window.deckFonts]);
  for (const img of document.images) {
    const larger = Math.min(LARGER, 970 / img.naturalWidth, 600 / img.naturalHeight);
    img.style.width = Math.floor(img.naturalWidth * larger) + "px";
  }
  let chapter, resumes = false;
  for (const cell of Array.from(slides.children)) {
    cell.remove();
    if (cell.matches("aside")) {
      section.append(cell);
      continue;
    }
    [...cell.children].forEach((block, i) => {
      const heading = block.matches("h1, h2, h3");
      const type = i ? "" : cell.dataset.type;
      // A heading right below a heading stays there.
      const starts = heading ? type !== "-" && !section?.lastElementChild.matches("h1, h2, h3") : type.includes("slide");
      if (!section || starts) open(heading ? null : section && title());
      else if (resumes && !heading) open(chapter);
      resumes = false;
      if (block.matches("h1, h2")) chapter = block;
      place(block);
    });
    // After an exercise its section goes on, on a slide of its own: it may tell the answer.
    resumes ||= cell.dataset.type === "exercise-ends";
  }
  slides.parentElement.classList.remove("paging");
  Reveal.initialize({ width: 1024, height: 768, margin: 0, center: false, hash: true, slideNumber: "c/t", keyboard: window.deckKeys, transition: "none", controls: false, scrollActivationWidth: null });
});
