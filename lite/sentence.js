// The sentence at the top of the first page: where each word looks, in every head of the model. No Python runs here: the
// scores are stored (tools/record_sentences.py), and this script takes the softmax of them at the d_k of the slider.
// Words, heads and layers count from 0 inside, layers and heads from 1 in what is read and in links.
{
  const LAYERS = 30, HEADS = 9, TRAINED = 64;
  const STOPS = [...Array(11).keys()].map((i) => 2 ** i);
  const LETTERS = [...Array(127).keys()].slice(35).map((i) => String.fromCharCode(i)).filter((c) => !"<\\&".includes(c));
  const CODE = Object.fromEntries(LETTERS.map((c, i) => [c, i / (LETTERS.length - 1)]));
  const $ = (id) => document.getElementById(id);
  const pct = (x) => x.toFixed(2);
  const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const shown = (token) => escaped(token.replace(/\n\s*/, "↵").trim() || "␣").replace(/^[,.;:]$/, "“$&”");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const upright = matchMedia("(max-width: 900px)");

  const catalogue = JSON.parse($("sentences").textContent); // of each: id, name, file; of the first: all
  const loaded = { [catalogue[0].id]: JSON.parse($("first-sentence").textContent) };
  const guesses = {}; // id -> what was guessed
  let item = loaded[catalogue[0].id];
  let state; // layer, head, query; key: the word that the grid looks for, or null; stop; whole: the whole model
  let pointed = null; // [layer, head] under the mouse
  let lit = null; // the word under the mouse

  // --- the numbers

  function scores(layer, head, query) {
    // as they lie below the largest of the row, before the division
    const n = item.words.length, all = (n * (n + 3)) / 2;
    const at = (layer * HEADS + head) * all + (query * (query + 3)) / 2;
    const scale = 0.5 * 512 ** CODE[item.scores[at]];
    return Array.from(item.scores.slice(at + 1, at + query + 2), (letter) => -scale * CODE[letter] ** 2);
  }

  function weights(layer, head, query, d_k) {
    const exps = scores(layer, head, query).map((score) => Math.exp(score / Math.sqrt(d_k))); // the largest is 0
    const sum = exps.reduce((a, b) => a + b);
    return exps.map((e) => e / sum);
  }

  const open = () => !item.guess || item.id in guesses;
  const now = () => {
    const [layer, head] = pointed ?? [state.layer, state.head];
    return state.whole ? item.stops[state.stop][1] : weights(layer, head, state.query, STOPS[state.stop]);
  };
  const looked = () => (lit !== null && lit < state.query ? lit : state.key);

  function brightness(layer, head) {
    const row = weights(layer, head, state.query, state.whole ? TRAINED : STOPS[state.stop]);
    const key = looked();
    // Where no word is looked for: all that goes to words which are neither the first nor the query itself.
    return key !== null ? (row[key] ?? 0) : row.reduce((sum, w, j) => (j && j !== state.query ? sum + w : sum), 0);
  }

  // --- the words, and the ribbons: u runs along the sentence, v away from it

  const svg = $("ribbons-picture"), XMLNS = "http://www.w3.org/2000/svg";
  const pen = document.createElement("canvas").getContext("2d");
  let place; // where everything stands
  let drawn = null; // the row that the ribbons show, which a new one grows out of
  let frame = 0;

  function element(tag, attributes, parent) {
    const made = document.createElementNS(XMLNS, tag);
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    parent.append(made);
    return made;
  }

  function measured(size) {
    pen.font = `${size}px system-ui, sans-serif`;
    const gap = size * 0.55;
    let x = 8;
    const spots = item.words.map((token, j) => {
      if (j && /^\s/.test(token)) x += gap;
      const wide = pen.measureText(token.replace(/\n\s*/, "↵").trim()).width;
      x += wide;
      return { u: x - wide / 2, wide };
    });
    return { spots, total: x + 16 };
  }

  function layout() {
    const tall = upright.matches, n = item.words.length, width = $("sentence").clientWidth;
    let size = tall ? 16 : 20, line = measured(size);
    while (!tall && line.total > width - 212 && size > 13) line = measured((size -= 1));
    const step = n > 10 ? 24 : 30, base = tall ? 110 : 262;
    const us = line.spots.map(({ u }, j) => (tall ? j * step + step / 2 : u));
    const wide = tall ? width : line.total, high = tall ? n * step + 6 : 326;
    svg.replaceChildren();
    for (const [name, x] of [["width", wide], ["height", high], ["viewBox", `0 0 ${wide} ${high}`]]) svg.setAttribute(name, x);
    $("sentence").style.setProperty("--size", `${size}px`);
    const ribbons = element("g", { class: "ribbons" }, svg);
    const words = line.spots.map(({ wide }, j) => {
      const word = element("g", { class: "word", tabindex: 0, role: "button" }, svg);
      const box = tall ? { x: 0, y: us[j] - step / 2, width: base, height: step } : { x: us[j] - wide / 2 - 3, y: base + 4, width: wide + 6, height: 46 };
      element("rect", { ...box, rx: 4 }, word);
      const name = tall ? { x: base - 6, y: us[j] + size * 0.35, "text-anchor": "end" } : { x: us[j], y: base + 27, "text-anchor": "middle" };
      element("text", { ...name, class: "name" }, word).textContent = item.words[j].replace(/\n\s*/, "↵").trim();
      element("text", tall ? { class: "weight", x: 2, y: us[j] + 4 } : { class: "weight", x: us[j], y: base + 45, "text-anchor": "middle" }, word);
      word.addEventListener("click", () => choose({ query: j, key: j === state.query ? state.key : null, whole: false }));
      word.addEventListener("keydown", (event) => {
        const to = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (to) place.words[j + to]?.focus();
        else if (event.key !== "Enter" && event.key !== " ") return;
        else word.dispatchEvent(new Event("click"));
        event.preventDefault();
      });
      word.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && light(j));
      word.addEventListener("pointerleave", () => light(null));
      return word;
    });
    const paths = words.map(() => element("path", {}, ribbons));
    place = { us, base, tall, words, paths, full: tall ? 24 : 36, deep: tall ? wide - base - 16 : base - 8 };
    drawn = null;
  }

  const point = (u, v) => (place.tall ? [place.base + v, u] : [u, place.base - v]).map((x) => x.toFixed(1)).join(" ");

  function ribbon(from, to, size, depth) {
    // from the query, at `from`, to the middle of the key, both `size` wide
    const outer = (Math.min(place.deep, depth) * 4) / 3, inner = Math.max(0, outer - (size * 4) / 3);
    const [k0, k1] = [to - size / 2, to + size / 2], q1 = from + size;
    return `M${point(q1, 0)}C${point(q1, outer)} ${point(k0, outer)} ${point(k0, 0)}L${point(k1, 0)}C${point(k1, inner)} ${point(from, inner)} ${point(from, 0)}Z`;
  }

  function paint({ u, row }) {
    // The ribbons leave the query side by side, together as wide as `full`; the nearest key has the innermost place.
    const { us, full, paths, deep } = place, longest = us.at(-1) - us[0] || 1;
    let from = u - full / 2;
    for (let j = us.length - 1; j >= 0; j--) {
      const size = row[j] * full, itself = us[j] >= u - 1;
      paths[j].setAttribute("class", itself ? "itself" : "");
      let d = "";
      if (size > 0.08) {
        d = itself
          ? `M${point(from, 0)}L${point(from, 14)}L${point(from + size, 14)}L${point(from + size, 0)}Z`
          : ribbon(from, us[j], size, (0.16 + (0.82 * (u - us[j])) / longest) * deep);
      }
      paths[j].setAttribute("d", d);
      from += size;
    }
  }

  function morph(row, grow) {
    const to = { u: place.us[state.query], row: item.words.map((_, j) => row[j] ?? 0) };
    const from = drawn ?? { u: to.u, row: to.row.map(() => 0) };
    const start = performance.now(), time = grow ? 600 : 200;
    cancelAnimationFrame(frame);
    const step = () => {
      const share = still.matches ? 1 : Math.min(1, (performance.now() - start) / time), eased = 1 - (1 - share) ** 3;
      const between = (a, b) => a + (b - a) * eased;
      drawn = { u: between(from.u, to.u), row: to.row.map((w, j) => between(from.row[j], w)) };
      paint(drawn);
      if (share < 1) frame = requestAnimationFrame(step);
    };
    step();
  }

  function name(row) {
    let last = -99, low = false; // numbers that would touch take turns
    place.words.forEach((word, j) => {
      const [, , number] = word.children, w = row[j] ?? 0;
      const later = j > state.query, kind = j === state.query ? " query" : later ? " later" : w >= 0.3 ? " key" : "";
      word.setAttribute("class", `word${kind}${j === lit ? " lit" : ""}`);
      number.textContent = !later && w >= 0.05 ? pct(w) : "";
      if (!place.tall && number.textContent) {
        low = place.us[j] - last < 33 && !low;
        number.setAttribute("y", place.base + (low ? 60 : 45));
        last = place.us[j];
      }
      const says = j === state.query ? "asks" : later ? "comes later" : `gets ${pct(w)}`;
      word.setAttribute("aria-label", `${item.words[j].trim()}, ${says}`);
      word.setAttribute("aria-pressed", j === state.query);
    });
  }

  function light(j) {
    lit = open() && j !== null && j < state.query ? j : null;
    svg.firstElementChild.setAttribute("class", lit === null ? "ribbons" : "ribbons dim");
    place.paths.forEach((path, i) => path.classList.toggle("lit", i === lit));
    place.words.forEach((word, i) => word.classList.toggle("lit", i === lit));
    colour();
  }

  // --- the grid of heads

  const grid = $("heads"), CELL = { x: 19.5, y: 19, left: 16, top: 2 };
  const cells = [];
  for (let layer = 0; layer < LAYERS; layer++)
    for (let head = 0; head < HEADS; head++) {
      const box = { x: CELL.left + layer * CELL.x, y: CELL.top + head * CELL.y, width: 17, height: 16.5, rx: 2 };
      element("rect", box, grid);
      cells.push(element("rect", { ...box, class: "heat", opacity: 0 }, grid));
    }
  for (const layer of [1, 5, 10, 15, 20, 25, 30]) {
    const first = layer === 1;
    const at = { x: CELL.left + (first ? 0 : (layer - 0.5) * CELL.x - 1), y: 191, "text-anchor": first ? "start" : "middle" };
    element("text", at, grid).textContent = first ? "layer 1" : layer;
  }
  for (const head of [1, 5, 9]) element("text", { x: 10, y: CELL.top + (head - 0.5) * CELL.y + 2, "text-anchor": "end" }, grid).textContent = head;
  const ring = element("rect", { class: "ring", width: 20, height: 19.5, rx: 3 }, grid);
  let brightest = [0, 0];

  function colour() {
    const key = looked();
    let most = -1;
    for (let layer = 0; layer < LAYERS; layer++)
      for (let head = 0; head < HEADS; head++) {
        const x = open() ? brightness(layer, head) : 0;
        cells[layer * HEADS + head].setAttribute("opacity", (x ** (key === null ? 2 : 0.8)).toFixed(2));
        if (x > most) [most, brightest] = [x, [layer, head]];
      }
    ring.setAttribute("visibility", open() ? "visible" : "hidden");
    const [layer, head] = pointed ?? [state.layer, state.head];
    ring.setAttribute("x", CELL.left + layer * CELL.x - 1.5);
    ring.setAttribute("y", CELL.top + head * CELL.y - 1.5);
    const what = key === null ? "at words that are neither first nor itself" : `at <b class="key">${named(key)}</b>`;
    $("grid-says").innerHTML = open()
      ? `How much <b class="query">${named(state.query)}</b> looks ${what}, in ${LAYERS * HEADS} heads${state.whole && STOPS[state.stop] !== TRAINED ? ", as trained" : ""}`
      : `${LAYERS * HEADS} heads look back, each in its own way. Guess first.`;
    grid.classList.toggle("stored", state.whole && STOPS[state.stop] !== TRAINED);
  }

  function headAt(event) {
    const box = grid.getBoundingClientRect();
    const layer = Math.floor((((event.clientX - box.left) * 602) / box.width - CELL.left) / CELL.x);
    const head = Math.floor((((event.clientY - box.top) * 200) / box.height - CELL.top) / CELL.y);
    return layer >= 0 && layer < LAYERS && head >= 0 && head < HEADS ? [layer, head] : null;
  }

  function hover(head) {
    if (!open() || state.whole || String(head) === String(pointed)) return;
    pointed = head;
    tell();
  }

  const keep = ([layer, head]) => choose({ layer, head, whole: false });
  grid.addEventListener("pointermove", (event) => (event.pointerType === "mouse" || event.buttons) && hover(headAt(event)));
  grid.addEventListener("pointerleave", () => hover(null));
  grid.addEventListener("click", (event) => open() && headAt(event) && keep(headAt(event)));
  grid.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!move || !open()) return;
    event.preventDefault();
    keep([(state.layer + move[0] + LAYERS) % LAYERS, (state.head + move[1] + HEADS) % HEADS]);
  });

  // --- what is said

  function named(j) {
    const words = item.words.map((word) => word.trim());
    const same = words.flatMap((word, i) => (word === words[j] ? [i] : []));
    return (same.length > 1 ? `the ${["first", "second", "third", "fourth"][same.indexOf(j)]} ` : "") + shown(item.words[j]);
  }

  function tell(grow) {
    colour();
    if (!open()) return;
    const row = now(), d_k = STOPS[state.stop], [layer, head] = pointed ?? [state.layer, state.head];
    morph(row, grow);
    name(row);
    const mark = (j) => `<b class="${j === state.query ? "query" : "key"}" data-word="${j}">${named(j)}</b>`;
    const falling = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]);
    const far = falling.filter(([w, j]) => j && j !== state.query && w >= 0.05).slice(0, 2);
    const rest = state.query ? `${pct(row[0])} on the first word, ${pct(row[state.query])} on itself` : "";
    const parks = !far.length || Math.max(row[0], row[state.query]) > far[0][0];
    const others = far.map(([w, j]) => `at ${mark(j)} with ${pct(w)}`).join(", ");
    const looks = parks ? `mostly rests, ${rest}${others && `; it looks ${others}`}.` : `looks ${others}; ${rest}.`;
    const where = `Layer ${layer + 1}, head ${head + 1}: ${mark(state.query)} `;
    $("head-says").innerHTML = where + (state.query ? looks : "has only itself to look at.");
    const root = Math.sqrt(d_k), by = root % 1 && root < 10 ? root.toFixed(1) : Math.round(root);
    const moves = d_k < TRAINED ? "sharper: the ribbons gather" : "paler: the ribbons spread";
    const effect = d_k === TRAINED ? "as the model was trained" : state.whole ? "not by 8" : `not by 8, and looks ${moves}`;
    const most = `Most goes to ${mark(falling[0][1])}: ${pct(falling[0][0])}.`;
    const answer = state.whole ? "" : item.stops && d_k !== TRAINED ? " The answer is that of the model as trained." : "";
    $("slider-says").innerHTML = `${state.whole ? "All heads divide" : "This head divides"} by ${by}, ${effect}. ${most}${answer}`;
  }

  const asLink = (line) =>
    escaped(line)
      .replace(/\*([^*]+)\*/g, "<i>$1</i>")
      .replace(/\{(\d+)\.(\d+)\.(\d+)\.(\d+)\}/g, (_, layer, head, query, key) => {
        const w = weights(layer - 1, head - 1, Number(query), TRAINED)[key];
        return `<button class="link" data-head="${[layer, head, query, key]}" title="layer ${layer}, head ${head}">${pct(w)}</button>`;
      })
      .replace(/\{(\d+)\|([^}]+)\}/g, '<button class="link" data-query="$1">$2</button>');

  function update(grow) {
    document.querySelector("#sentence").classList.toggle("waiting", !open());
    for (const chip of $("chips").children) chip.setAttribute("aria-pressed", chip.dataset.id === item.id);
    $("ask").hidden = open();
    $("answer").hidden = !open();
    $("blank").className = open() ? "said" : "";
    $("blank").textContent = "";
    if (open()) {
      const words = state.whole ? item.stops[state.stop][0] : item.next;
      $("blank").innerHTML = shown(words[0][0]);
      const guess = guesses[item.id];
      $("verdict").innerHTML = guess ? `You said ${escaped(guess)}. The model says <b class="next">${shown(words[0][0])}</b>.` : "The model's first choices:";
      $("next-words").innerHTML = words
        .map(([token, p]) => `<li><span>${shown(token)}</span><span><i style="width:${Math.max(1, p * 100)}%"></i></span><span>${pct(p)}</span></li>`)
        .join("");
      $("line").innerHTML = asLink(item.line);
    } else {
      $("ask").firstElementChild.textContent = item.ask;
      $("ask").lastElementChild.replaceChildren(
        ...item.guess.map((guess) => {
          const button = document.createElement("button");
          button.textContent = guess;
          button.addEventListener("click", () => {
            guesses[item.id] = guess;
            update(true);
            place.words[state.query].focus({ preventScroll: true });
          });
          return button;
        }),
      );
      place.words.forEach((word, j) => word.setAttribute("aria-label", item.words[j].trim()));
    }
    for (const button of $("way").children) button.setAttribute("aria-pressed", (button.value === "whole") === state.whole);
    $("way").hidden = !item.stops;
    $("d_k").value = state.stop;
    $("d_k").setAttribute("aria-valuetext", `d_k = ${STOPS[state.stop]}`);
    $("d_k-value").textContent = STOPS[state.stop];
    tell(grow);
    if (open()) history.replaceState(null, "", link());
  }

  const link = () =>
    `#s=${item.id}&l=${state.layer + 1}&h=${state.head + 1}&q=${state.query}&d=${STOPS[state.stop]}${state.whole ? "&all=1" : ""}`;

  function choose(change) {
    if (!open()) return;
    pointed = lit = null;
    Object.assign(state, change);
    if (state.whole) {
      // stored for the head and the word it starts with
      const [layer, head, key] = item.start;
      Object.assign(state, { layer: layer - 1, head: head - 1, key, query: item.words.length - 1 });
    }
    update();
  }

  async function show(id, restored) {
    if (!loaded[id]) {
      const { file } = catalogue.find((known) => known.id === id);
      $("verdict").textContent = "";
      try {
        loaded[id] = await (await fetch(file)).json();
      } catch {
        $("slider-says").textContent = "This sentence could not be fetched. Fix: connect, and press again.";
        return;
      }
    }
    item = loaded[id];
    const [layer, head, key] = item.start;
    pointed = lit = null;
    state = { layer: layer - 1, head: head - 1, key, query: item.words.length - 1, stop: STOPS.indexOf(TRAINED), whole: false };
    if (restored) Object.assign(state, restored(item));
    layout();
    update(true);
  }

  // --- controls, links, pictures

  for (const { id, name: text } of catalogue) {
    const chip = document.createElement("button");
    Object.assign(chip, { textContent: text });
    chip.dataset.id = id;
    chip.addEventListener("click", () => show(id));
    $("chips").append(chip);
  }
  $("d_k").addEventListener("input", (event) => choose({ stop: Number(event.target.value) }));
  $("brightest").addEventListener("click", () => keep(brightest));
  for (const button of $("way").children) button.addEventListener("click", () => choose({ whole: button.value === "whole" }));
  for (const id of ["head-says", "slider-says"]) {
    $(id).addEventListener("pointerover", (event) => light(event.target.dataset.word ? Number(event.target.dataset.word) : null));
    $(id).addEventListener("pointerleave", () => light(null));
  }
  $("line").addEventListener("click", ({ target: { dataset } }) => {
    if (dataset.query) return choose({ query: Number(dataset.query), key: null, whole: false });
    if (!dataset.head) return;
    const [layer, head, query, key] = dataset.head.split(",").map(Number);
    choose({ layer: layer - 1, head: head - 1, query, key, stop: STOPS.indexOf(TRAINED), whole: false });
  });
  $("copy").addEventListener("click", async () => {
    const address = new URL(open() ? link() : "#", location).href;
    try {
      await navigator.clipboard.writeText(address);
      $("copied").textContent = "Copied.";
    } catch {
      $("copied").textContent = address; // where a page may not write there, a reader can
    }
  });

  function standalone() {
    // the picture with its colours written out, since a style sheet does not travel with it
    const copy = svg.cloneNode(true), from = [...svg.querySelectorAll("*")], style = getComputedStyle(document.body);
    [...copy.querySelectorAll("*")].forEach((part, i) => {
      const own = getComputedStyle(from[i]);
      for (const name of ["fill", "opacity", "font-size", "font-weight"]) part.style.setProperty(name, own.getPropertyValue(name));
      part.removeAttribute("tabindex");
    });
    copy.setAttribute("xmlns", XMLNS);
    copy.setAttribute("style", `background:${style.backgroundColor};font-family:system-ui,sans-serif`);
    return new XMLSerializer().serializeToString(copy);
  }

  function save(href, file) {
    const anchor = Object.assign(document.createElement("a"), { href, download: file });
    anchor.click();
  }

  $("save-svg").addEventListener("click", () => save(`data:image/svg+xml,${encodeURIComponent(standalone())}`, `${item.id}.svg`));
  $("save-png").addEventListener("click", () => {
    const picture = new Image();
    picture.onload = () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 1200, height: 630 }), to = canvas.getContext("2d");
      const style = getComputedStyle(document.body), size = Math.min(1120 / picture.width, 500 / picture.height);
      to.fillStyle = style.backgroundColor;
      to.fillRect(0, 0, 1200, 630);
      to.drawImage(picture, 40, 560 - picture.height * size, picture.width * size, picture.height * size);
      to.fillStyle = style.color;
      to.font = "24px system-ui, sans-serif";
      to.fillText(`${$("head-says").textContent} d_k = ${STOPS[state.stop]}`, 40, 605, 1120);
      save(canvas.toDataURL("image/png"), `${item.id}.png`);
    };
    picture.src = `data:image/svg+xml,${encodeURIComponent(standalone())}`;
  });

  let width = innerWidth; // a phone changes its height as one scrolls
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    layout();
    update();
  });

  function start() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const known = catalogue.find(({ id }) => id === asked.get("s"));
    if (!known || !asked.get("l")) return show(known?.id ?? catalogue[0].id);
    guesses[known.id] ??= "";
    const within = (x, most) => Math.min(most, Math.max(0, Number(x) || 0));
    return show(known.id, ({ words, stops }) => {
      const stop = STOPS.indexOf(Number(asked.get("d"))), last = words.length - 1;
      const query = asked.has("q") ? within(asked.get("q"), last) : last;
      const place = { layer: within(asked.get("l") - 1, LAYERS - 1), head: within(asked.get("h") - 1, HEADS - 1), query };
      return { ...place, ...(query < last && { key: null }), ...(stop >= 0 && { stop }), whole: Boolean(stops && asked.get("all")) };
    });
  }
  addEventListener("hashchange", () => location.hash !== link() && start());
  start();
}
