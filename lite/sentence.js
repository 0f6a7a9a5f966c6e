// The sentence at the top of the first page: where each word looks, in every head of the model. Of stored sentences this
// script takes the softmax itself, as trained (tools/record_sentences.py stores the scores). Of one's own sentence the weights come from Python: worker.js runs the model, once somebody has asked for it.
// Words, heads and layers count from 0 inside, layers and heads from 1 in what is read and in links.
"use strict"; // also keeps our functions out of the page's global names
{
  const LAYERS = 30, HEADS = 9, TRAINED = 64, DRAWN = 24, LABEL = 20; // DRAWN: products of a score; LABEL: room of the line above the ribbons, in pixels
  const STOPS = [...Array(11).keys()].map((i) => 2 ** i), AS_TRAINED = STOPS.indexOf(TRAINED);
  const LETTERS = [...Array(127).keys()].slice(35).map((i) => String.fromCharCode(i)).filter((c) => !"<\\&".includes(c));
  const CODE = Object.fromEntries(LETTERS.map((c, i) => [c, i / (LETTERS.length - 1)]));
  const $ = (id) => document.getElementById(id);
  const $$ = (selector) => [...document.querySelectorAll(selector)];
  const UNSURE = 0.05; // a best word below it is no answer
  const SIGNS = { ",": "a comma", ".": "a full stop", "-": "a hyphen", _: "an underscore", '"': "a quotation mark" };
  const pct = (x) => (x > 0 && x < 0.005 ? "<1\u00a0%" : `${Math.round(x * 100)}\u00a0%`);
  const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const drawnAs = (token) => token.replace(/\n\s*/, "↵").trim() || "␣";
  const shown = (token) => escaped(drawnAs(token)).replace(/^([,.;:]|_+)$/, "“$&”");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const upright = matchMedia("(max-width: 700px)");

  const { sentences: catalogue, mistakes, writes } = JSON.parse($("known").textContent);
  const loaded = { [catalogue[0].id]: JSON.parse($("first-sentence").textContent) }; // of the others: id, name, file
  const owns = {}; // text -> one's own sentence: words, and what was read, by way and d_k
  const guesses = {}; // id -> what was guessed
  let item = loaded[catalogue[0].id];
  // layer, head, query; key: the word that the grid looks for, or null; stop: of the slider; way: "whole", the model with
  // nothing broken; or "without", where the head is removed; or the mistake that is made
  let state;
  let scene = 0;
  let pointed = null; // [layer, head] under the mouse
  let lit = null; // the word under the mouse
  let costs = false; // whether the grid shows what each removal costs, not what each head takes
  let reminds = false; // that it waits: said once, until the next change
  let yours = null; // what was picked, while what is stored of another head and word is shown
  let back = Number.isInteger(history.state?.scene) ? history.state : null; // how this page was left

  // --- the numbers

  function scores(layer, head, query) {
    // as they lie below the largest of the row, before the division
    const n = item.words.length, all = (n * (n + 3)) / 2;
    const at = (layer * HEADS + head) * all + (query * (query + 3)) / 2;
    const scale = 0.5 * 512 ** CODE[item.scores[at]];
    return Array.from(item.scores.slice(at + 1, at + query + 2), (letter) => -scale * CODE[letter] ** 2);
  }

  function weights(layer, head, query) {
    const exps = scores(layer, head, query).map((score) => Math.exp(score / Math.sqrt(TRAINED))); // the largest is 0
    const sum = exps.reduce((a, b) => a + b);
    return exps.map((e) => e / sum);
  }

  const asks = () => !item.own && !(item.id in guesses); // whoever comes by a link guesses first, too
  const open = () => !asks() && !item.reading;
  const last = () => item.words.length - 1;
  const mistaken = () => state.way in mistakes;
  const removed = () => state.way === "without";
  // Of a stored sentence another model is stored with one head and the last word alone, and the model as trained with all.
  const unchanged = () => removed() || (state.way === "whole" && state.stop === AS_TRAINED);
  const fixed = () => !item.own && !unchanged();
  // Without a mask a row reaches beyond its word, where no ribbon goes: the last word's is whole.
  // The scenes behind the first stay with the head and the word that a stored sentence starts with.
  const pinned = () => !item.own && scene > 0;
  const lastAlone = () => fixed() || pinned() || state.way === "no causal mask";
  const wayAsked = () => (removed() ? `without:${state.layer + 1}.${state.head + 1}` : state.way);
  const readKey = (way, stop) => `${way}:${way === "whole" ? STOPS[stop] : TRAINED}`;
  const key = () => readKey(wayAsked(), state.stop);
  const got = () => !item.own || Boolean(item.read[key()]?.maps);
  const ghost = () => removed() && !pointed; // what the head took is drawn as an outline

  function said() {
    // what the model says in this state: next words, how it goes on, its loss
    if (item.own) return item.read[key()] ?? {};
    if (removed()) return withoutHead(state.layer, state.head);
    return mistaken() ? item.mistakes[state.way] : item.stops[state.stop];
  }

  function withoutHead(layer, head) {
    const { tokens, next } = item.without, flat = next[layer * HEADS + head], pairs = [];
    for (let i = 0; i < flat.length; i += 2) pairs.push([tokens[flat[i]], flat[i + 1] / 1000]);
    return { next: pairs };
  }

  // how much less likely the model's word is without a head; a word that is none of the first five has less than the last of them
  function cost(layer, head) {
    const { next } = withoutHead(layer, head), [word, p] = item.next[0];
    return p - (next.find(([token]) => token === word)?.[1] ?? next.at(-1)[1]);
  }

  const asTrained = () => (item.own ? (item.read[`whole:${TRAINED}`] ?? {}) : item);

  function row(layer, head, query = state.query) {
    if (item.own) {
      const n = item.words.length, at = ((layer * HEADS + head) * n + query) * n;
      return Array.from((removed() ? asTrained() : item.read[key()]).maps.subarray(at, at + query + 1));
    }
    return weights(layer, head, query);
  }

  const shownHead = () => pointed ?? [state.layer, state.head];
  const now = () => {
    if (fixed()) return said().row;
    const seen = row(...shownHead());
    return ghost() ? seen.map(() => 0) : seen; // what it found is not added
  };
  // Between the first word and the second stands none, so heads are told by how much they look at the first.
  const looked = () => (lit !== null && lit < state.query ? lit : (state.key ?? (state.query === 1 ? 0 : null)));

  function brightness(layer, head) {
    const seen = row(layer, head), key = looked();
    // Where no word is looked for: all that goes to words which are neither the first nor the query itself.
    return key !== null ? (seen[key] ?? 0) : seen.reduce((sum, w, j) => (j && j !== state.query ? sum + w : sum), 0);
  }

  // --- the words, and the ribbons: u runs along the sentence, v away from it

  const svg = $("stage"), XMLNS = "http://www.w3.org/2000/svg";
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

  function measured(size, room) {
    // where the words stand: u from the left, and in which row
    pen.font = `${size}px ${getComputedStyle(svg).getPropertyValue("--serif")}`;
    const gap = size * 0.42, spots = [];
    let x = 4, line = 0, total = 0;
    for (const token of item.words) {
      const wide = pen.measureText(drawnAs(token)).width, blank = spots.length && /^\s/.test(token) ? gap : 0;
      if (x + blank + wide > room && spots.length) [x, line] = [4, line + 1];
      else x += blank;
      x += wide;
      total = Math.max(total, x);
      spots.push({ u: x - wide / 2, wide, line });
    }
    return { spots, total, end: x + gap, lines: line + 1 };
  }

  function layout() {
    const tall = upright.matches, waits = asks(), n = item.words.length, width = $("look").clientWidth || 800; // hidden: any
    const beside = waits || innerWidth <= 960 ? 0 : innerWidth <= 1100 ? 232 : 288, blank = innerWidth <= 1100 ? 84 : 112;
    const most = n > 14 ? 3 : 1, room = tall ? 1e6 : width - beside - blank; // rows
    // On a phone a word is as high as a finger needs; where the picture stays beside what is pressed, as its letters need.
    const roomy = Math.max(24, Math.min(30, 320 / n)), tight = (mostHigh() - 16) / (n + 1), brief = tall && scene % 3 > 0 && tight >= 13.8;
    const step = brief ? Math.min(roomy, tight) : roomy;
    let size = tall ? (step < 17 ? 13 : 16) : 25, line = measured(size, room);
    while (!tall && line.lines > most && size > 13) line = measured((size = size > 20 ? 20 : size > 16 ? 16 : 13), room);
    const foot = innerWidth <= 960 || line.lines > 2 ? 236 : line.lines > 1 ? Math.max(184, Math.min(236, innerHeight - 466)) : Math.max(124, Math.min(236, innerHeight - 640)); // where they stand on the words: the scene is on the same screen
    const above = waits ? 0 : brief ? 6 : LABEL, bottom = tall ? 116 : waits ? 6 : foot, pitch = line.lines === 2 ? foot - 76 - (foot === 236 ? 28 : 0) : 84;
    const us = line.spots.map(({ u }, j) => (tall ? above + j * step + step / 2 : u));
    const bases = line.spots.map(({ line: at }) => (tall ? bottom : bottom - (line.lines - 1 - at) * pitch));
    const full = line.total + blank, off = tall ? 0 : Math.max(0, Math.min((width - beside - full) / 2, waits ? 1e6 : 48));
    svg.replaceChildren();
    const high = above + (n + 1) * step + 10; // the next word has a line of its own below the last
    if (tall) svg.setAttribute("viewBox", `-16 0 ${width + 32} ${high}`); // from edge to edge of a phone
    else svg.removeAttribute("viewBox");
    svg.style.height = tall ? `${high}px` : waits ? "" : `${foot + 72}px`;
    const whole = element("g", { transform: `translate(${off.toFixed(1)} 0)` }, svg), ribbons = element("g", { class: "bands" }, whole);
    const words = line.spots.map(({ wide }, j) => {
      const word = element("g", { class: "word" }, whole), base = bases[j];
      const box = tall ? { x: 0, y: us[j] - step / 2, width: base, height: step } : { x: us[j] - wide / 2 - 4, y: base + 4, width: wide + 8, height: 56 };
      element("rect", { ...box, rx: 4 }, word);
      const name = tall ? { x: base - 8, y: us[j] + size * 0.375, "text-anchor": "end" } : { x: us[j], y: base + 33, "text-anchor": "middle" };
      element("text", { ...name, class: "name", "font-size": size }, word).textContent = drawnAs(item.words[j]);
      element("text", tall ? { class: "num", x: 0, y: us[j] + 5 } : { class: "num", x: us[j], y: base + 54, "text-anchor": "middle" }, word);
      if (waits) return word; // nothing to press before a guess
      word.setAttribute("tabindex", 0);
      word.setAttribute("role", "button");
      word.addEventListener("click", () => !lastAlone() && choose({ query: j, key: j === state.query ? state.key : null }));
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
    const x = line.end + 6, base = bases.at(-1), low = above + (n + 0.5) * step + (brief ? 10 : 6); // below the ribbons
    element("path", { d: tall ? `M${bottom - 80} ${low + (brief ? 4 : 7)}h72` : `M${x} ${base + 40}h${blank - 16}`, class: "blank" }, whole);
    const at = tall ? { x: bottom - 8, y: low, "text-anchor": "end" } : { x: x + 4, y: base + 33 };
    const gap = element("text", { ...at, class: "gap", "font-size": size }, whole);
    const paths = words.map(() => element("path", { class: "band" }, ribbons));
    const deep = Math.max(8, tall ? width - 114 : line.lines > 1 ? pitch - 58 : bottom - 24);
    const longest = line.lines > 1 ? line.total : us.at(-1) - us[0] || 1;
    const sure = tall && element("text", { class: "sure", x: bottom, y: low }, whole); // the answer's number, where the answer is out of sight
    const label = element("text", { class: "label", ...(brief ? { x: width, y: low, "text-anchor": "end" } : { x: 0, y: 14 }) }, svg);
    const own = element("text", { class: "itself" }, whole);
    place = { us, bases, tall, brief, sure, label, own, words, paths, gap, ribbons, full: tall ? 24 : 38, deep, longest };
    drawn = null;
    $("flat").hidden = !waits;
    $("flat").innerHTML = `${escaped(item.words.join("").replace(/\n\s*/g, " ↵ "))} <span class="blank">&nbsp;</span>`;
    arrange(tall, width);
    stay();
  }

  const mostHigh = () => (innerHeight < 500 ? 0 : scene ? Math.max(224, innerHeight * 0.27) : Math.max(288, innerHeight * 0.47)); // of ribbons that stay

  function stay() {
    // on a phone the ribbons stay beside what changes them, and cover nothing that takes the focus; a change of height takes time
    const high = Number.parseFloat(svg.style.height), stays = svg.classList.toggle("stays", upright.matches && scene < 3 && high <= mostHigh());
    $("scenes").style.setProperty("--stays", `${stays ? high : 0}px`);
  }

  const point = (u, v, base) => (place.tall ? [base + v, u] : [u, base - v]).map((x) => x.toFixed(1)).join(" ");

  function ribbon(from, to, size, depth, base) {
    // from the query, at `from`, to the middle of the key, both `size` wide
    const outer = (Math.min(place.deep, depth) * 4) / 3, inner = Math.max(0, outer - (size * 4) / 3);
    const [k0, k1] = [to - size / 2, to + size / 2], q1 = from + size, at = (u, v) => point(u, v, base);
    return `M${at(q1, 0)}C${at(q1, outer)} ${at(k0, outer)} ${at(k0, 0)}L${at(k1, 0)}C${at(k1, inner)} ${at(from, inner)} ${at(from, 0)}Z`;
  }

  function upwards(from, to, size, base, above) {
    // to a word in a row above: from the query's upper edge to below the word
    const end = above + 60, middle = (base + end) / 2, k0 = to - size / 2, k1 = to + size / 2, q1 = from + size;
    return `M${from} ${base}C${from} ${middle} ${k0} ${middle} ${k0} ${end}L${k1} ${end}C${k1} ${middle} ${q1} ${middle} ${q1} ${base}Z`;
  }

  function paint({ u, base, row }) {
    // The ribbons leave the query side by side, together as wide as `full`; the nearest key has the innermost place.
    const { us, bases, full, paths, deep, longest, tall } = place;
    let from = u - full / 2;
    // those to a row above do not cross: they leave in the order of their words
    const higher = (j) => !tall && bases[j] < base - 1, order = [...many(us.length).filter((j) => !higher(j)).reverse(), ...many(us.length).filter(higher).sort((a, b) => us[a] - us[b])];
    for (const j of order) {
      const size = row[j] * full, above = higher(j), itself = !above && us[j] >= u - 1;
      paths[j].setAttribute("class", `band${itself ? " own" : ""}${j === lit ? " lit" : ""}`);
      let d = "";
      if (row[j] >= 0.005 && (row[j] > 0.03 || !ghost())) {
        const at = (u, v) => point(u, v, base);
        if (itself) d = `M${at(from, 0)}L${at(from, 14)}L${at(from + size, 14)}L${at(from + size, 0)}Z`;
        else if (above) d = upwards(from, us[j], size, base, bases[j]);
        else d = ribbon(from, us[j], size, (0.16 + (0.82 * (u - us[j])) / longest) * deep, base);
      }
      paths[j].setAttribute("d", d);
      from += size;
    }
  }

  function morph(row, grow) {
    const to = { u: place.us[state.query], base: place.bases[state.query], row: item.words.map((_, j) => row[j] ?? 0) };
    const from = drawn?.base === to.base ? drawn : { u: to.u, row: to.row.map(() => 0) };
    const start = performance.now(), time = grow ? 700 : 240;
    cancelAnimationFrame(frame);
    const step = () => {
      const share = still.matches ? 1 : Math.min(1, (performance.now() - start) / time), eased = 1 - (1 - share) ** 3;
      const between = (a, b) => a + (b - a) * eased;
      drawn = { u: between(from.u, to.u), base: to.base, row: to.row.map((w, j) => between(from.row[j], w)) };
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
      word.setAttribute("class", `word${kind}`);
      number.textContent = !later && w >= 0.05 ? pct(w) : "";
      if (!place.tall && number.textContent) {
        low = Math.abs(place.us[j] - last) < (w < 0.095 ? 26 : 34) && !low;
        number.setAttribute("y", place.bases[j] + (low ? 70 : 54));
        last = place.us[j];
      }
      const says = j === state.query ? "looks" : later ? "comes later" : `${pct(w)} is taken from it`;
      word.setAttribute("aria-label", `${item.words[j].trim()}, ${says}`);
      word.setAttribute("aria-pressed", j === state.query);
      word.setAttribute("aria-disabled", lastAlone());
    });
    // the block is named where it stands; where ribbons leave it no room, in the line beside the picture
    for (const [name, at] of [["x", place.us[state.query] + place.full / 2 + 6], ["y", place.bases[state.query] - 3]]) place.own.setAttribute(name, at);
    place.own.textContent = place.tall || !itself(row) ? "" : "■ itself";
  }

  const itself = (row) => row[state.query] >= 0.005;

  function light(j) {
    lit = open() && j !== null && j < state.query ? j : null;
    place.ribbons.classList.toggle("dim", lit !== null);
    place.paths.forEach((path, i) => path.classList.toggle("lit", i === lit));
    colour();
  }

  // --- the grid of heads

  const grid = $("heads"), cells = [], many = (count) => [...Array(count).keys()];
  let wide = 16, high = 16, banks = 1; // of a head: on a phone what a finger needs, and half of the layers below the others
  for (let i = 0; i < LAYERS * HEADS; i++) cells.push([element("rect", { class: "cell", rx: 2 }, grid), element("rect", { class: "heat", rx: 2, opacity: 0 }, grid)]);
  const ring = element("rect", { class: "ring", rx: 3 }, grid);
  const ticks = [1, 5, 10, 15, 16, 20, 25, 30].map((layer) => [layer, element("text", {}, grid)]);

  const bank = () => high * HEADS + 20 + 8 * (banks - 1);
  const spot = (layer, head) => [(layer % (LAYERS / banks)) * wide, Math.floor((layer * banks) / LAYERS) * bank() + head * high];

  function arrange(tall, width) {
    const room = Math.min(480, width + 16); // as wide as it is seen: its words are not shrunk
    [wide, high, banks] = tall ? [room / 15, Math.max(24, room / 15), 2] : [16, 16, 1];
    grid.setAttribute("viewBox", `0 0 ${tall ? room : 480} ${bank() * banks - 6 * (banks - 1)}`);
    cells.forEach((pair, i) => {
      const [x, y] = spot(Math.floor(i / HEADS), i % HEADS), box = { x, y, width: wide - 2, height: high - 2 };
      for (const rect of pair) for (const name in box) rect.setAttribute(name, box[name]);
    });
    for (const [layer, text] of ticks) {
      const [x, y] = spot(layer - 1, HEADS), first = !x; // of its line
      text.setAttribute("x", first ? 0 : x + wide / 2 - 1);
      text.setAttribute("y", y + 17);
      text.setAttribute("text-anchor", first ? "start" : "middle");
      text.textContent = first ? `layer ${layer}` : layer === 16 ? "" : layer;
    }
    ring.setAttribute("width", wide + 1);
    ring.setAttribute("height", high + 1);
  }

  const priced = () => costs && scene === 0 && Boolean(item.without) && open();

  function colour() {
    const key = looked(), visible = open() && got() && !fixed();
    const lost = priced() && many(LAYERS * HEADS).map((i) => cost(Math.floor(i / HEADS), i % HEADS));
    const dear = priced() && Math.max(...lost.map(Math.abs));
    for (let layer = 0; layer < LAYERS; layer++)
      for (let head = 0; head < HEADS; head++) {
        const paid = priced() && lost[layer * HEADS + head], x = priced() ? Math.abs(paid) / dear : visible ? brightness(layer, head) : 0, heat = cells[layer * HEADS + head][1];
        heat.setAttribute("opacity", (x ** (!priced() && key === null ? 2 : 0.8)).toFixed(2));
        heat.setAttribute("class", priced() ? `heat ${paid < 0 ? "gain" : "cost"}` : "heat");
      }
    const [layer, head] = shownHead();
    const [x, y] = spot(layer, head);
    ring.setAttribute("x", x - 1.5);
    ring.setAttribute("y", y - 1.5);
    const what = key === null ? `other words (without the first, ${shown(item.words[0])}, where most heads rest)` : `<b class="k">${named(key)}</b>`;
    $("costs").textContent = priced() ? "What is taken" : "What removals cost";
    if (priced()) $("grid-says").innerHTML = `All ${LAYERS * HEADS} heads, each removed alone: filled, the model is less sure of <b class="n">${wordOf(item.next[0][0])}</b>; hollow, surer`;
    else $("grid-says").innerHTML = `All ${LAYERS * HEADS} heads, ${HEADS} a layer: how much <b class="q">${shown(item.words[state.query])}</b> takes from ${what}`;
  }

  function headAt(event) {
    const box = grid.getBoundingClientRect(), unit = (wide * LAYERS) / banks / box.width;
    const line = Math.floor(((event.clientY - box.top) * unit) / bank()), column = Math.floor(((event.clientX - box.left) * unit) / wide);
    const layer = (line * LAYERS) / banks + column, head = Math.floor((((event.clientY - box.top) * unit) % bank()) / high);
    return column >= 0 && column < LAYERS / banks && line >= 0 && line < banks && head >= 0 && head < HEADS ? [layer, head] : null;
  }

  function hover(head) {
    if (!open() || fixed() || !got() || String(head) === String(pointed)) return;
    pointed = head;
    tell();
  }

  const keep = ([layer, head]) => choose({ layer, head });
  const moved = (layers, heads) => [(state.layer + layers + LAYERS) % LAYERS, (state.head + heads + HEADS) % HEADS];
  grid.addEventListener("pointermove", (event) => (event.pointerType === "mouse" || event.buttons) && hover(headAt(event)));
  grid.addEventListener("pointerup", (event) => event.pointerType !== "mouse" && pointed && keep(pointed)); // where a finger that slid stops
  grid.addEventListener("pointerleave", () => hover(null));
  grid.addEventListener("click", (event) => open() && headAt(event) && keep(headAt(event)));
  grid.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!move || !open()) return;
    event.preventDefault();
    keep(moved(...move));
  });

  // --- what is said

  function named(j) {
    const words = item.words.map((word) => word.trim());
    const same = words.flatMap((word, i) => (word === words[j] ? [i] : []));
    return (same.length > 1 ? `the ${["first", "second", "third", "fourth"][same.indexOf(j)] ?? "last"} ` : "") + shown(item.words[j]);
  }

  const mark = (j) => `<b class="${j === state.query ? "q" : "k"}" data-word="${j}">${j === state.query ? "itself" : named(j)}</b>`;

  // A token that goes on with the last word of the sentence is read with it: "b" and "akes" are "bakes".
  const goesInto = (token) => /^\p{L}/u.test(token) && /\p{L}$/u.test(item.words.at(-1));
  const wordOf = (token) => (goesInto(token) ? shown(item.words.at(-1) + token) : shown(token));

  // What a row of weights is, computed from it: nothing is said of it that it does not show.
  function effect(row) {
    const falling = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]), [[w0, j0], [w1, j1] = [0, 0]] = falling;
    const looks = `<b class="q">${shown(item.words[state.query])}</b>`;
    if (w0 >= 0.995) return `${looks} takes ${pct(w0)} from ${mark(j0)}.`;
    if (w0 > 0.9) return `${looks} takes almost all from ${mark(j0)}: ${pct(w0)}.`;
    if (w0 + w1 > 0.9) return `${looks} takes almost all from two words: ${pct(w0)} from ${mark(j0)} and ${pct(w1)} from ${mark(j1)}.`;
    if (row.length > 2 && w0 < 2 / row.length) return `${looks} takes no more than ${pct(w0)} from any word.`;
    return `${looks} takes most from ${mark(j0)}: ${pct(w0)}.`;
  }

  function division([...row]) {
    // from two scores to two percentages; where scores are not stored, their difference is the divisor times a logarithm
    const one = atStart() && stopShown(), drawn = one && item.workings.words, falling = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]);
    const [[w0, j0], [w1, j1] = [0, 0]] = drawn && falling[0][1] === drawn[0] ? drawn.map((j) => [row[j], j]) : falling;
    const root = Math.sqrt(STOPS[state.stop]), apart = one ? (one.scores[j0] - one.scores[j1]).toFixed(2) : (Math.log(w0 / w1) * root).toFixed(2);
    if (!(w1 >= 0.005 && apart / root > 0.05)) return "";
    const by = root % 1 ? root.toFixed(2) : root, more = (apart / by).toFixed(2), times = Math.exp(more);
    return `The score of ${mark(j0)} is ${apart} above that of ${mark(j1)}. Divided by ${by} that is ${more}, and exp(${more}) = ${times < 10 ? times.toFixed(1) : Math.round(times)} times as much is taken from it: ${pct(w0)} against ${pct(w1)}. All numbers are rounded.`;
  }

  function turned(seen) {
    // what the slider changed, beside the row itself
    if (state.stop === AS_TRAINED) return "Slide left, and it takes from fewer words; right, and from all of them alike.";
    const all = `All ${LAYERS * HEADS} heads divide so, and what they hand on changes the scores, too.`;
    if (item.own) return all;
    const [first, p] = item.next[0], key = item.start[2], after = said().next.find(([token]) => token === first)?.[1] ?? 0;
    if (!(seen[key] > item.row[key] && after < p - 0.01)) return all;
    return `More is taken from ${mark(key)} than as trained (${pct(item.row[key])}), and yet <b class="n">${wordOf(first)}</b> falls from ${pct(p)} to ${after ? pct(after) : "less than the first five words"}: more from one head is not more for the model.`;
  }

  function headSays(row) {
    const [layer, head] = shownHead(), looks = `<b class="q">${shown(item.words[state.query])}</b>`, who = `Layer ${layer + 1}, head ${head + 1}`;
    if (ghost()) {
      if (!said().next) return `${who} is removed: ${rereads()}`;
      const [word, before] = asTrained().next[0], after = said().next.find(([token]) => token === word)?.[1];
      if (after === undefined) return `${who} is removed (its output is set to 0): ${wordOf(word)} is not among the first five words, with the head ${pct(before)}.`;
      const more = after - before, much = Math.abs(more) < 0.01 ? "Hardly a change: the other heads do without it." : more > 0 ? "In this sentence the head held the answer back." : "The head helped.";
      return `${who} is removed (its output is set to 0): the model is ${pct(after)} sure of ${wordOf(word)}, with the head ${pct(before)}. ${much}`;
    }
    if (!state.query) return `${who}: ${looks} has only itself to look at.`;
    const far = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]).slice(0, 2).filter(([w]) => w >= 0.05);
    const others = far.map(([w, j]) => `${pct(w)} from ${mark(j)}`).join(", "), rests = !far[0]?.[1] && row[0] > 0.5;
    if (priced()) return `${who}: ${looks} takes ${others}. Without this head the model is ${pct(item.next[0][1] - cost(layer, head))} sure of <b class="n">${wordOf(item.next[0][0])}</b>, with it ${pct(item.next[0][1])}.`;
    const lifted = atStart() && unchanged() && row[item.start[2]] * item.workings.lifts[item.start[2]] >= 0.3 && cost(state.layer, state.head) >= 0.01;
    return `${who}: ${looks} takes ${others}.${rests ? " Many heads rest on the first word when no other fits." : ""}${lifted ? ` What is taken of ${mark(item.start[2])} makes the answer <b class="n">${shown(item.workings.answer)}</b> likelier: scene 2 shows how much.` : ""}`;
  }

  const rereads = () => (ready ? "the model reads again." : "to read it so, the model must be loaded again (scene 4).");

  function tell(grow) {
    colour();
    if (!open()) return;
    if (!got()) {
      $("works").replaceChildren();
      for (const id of ["taken", "turned", "lifts"]) $(id).replaceChildren();
      for (const id of ["head-says", "slider-says", "break-says"]) $(id).textContent = rereads().replace(/^./, (c) => c.toUpperCase());
      place.label.textContent = ready ? `The model reads again: ${counted} of ${item.words.length} words` : "";
      return;
    }
    const seen = now(), [layer, head] = shownHead();
    place.ribbons.classList.toggle("ghost", ghost());
    morph(ghost() ? row(layer, head) : seen, grow);
    name(seen);
    const waits = reminds && elsewhere(), told = waits ? " (your pick waits in scene 1)" : ghost() ? ": removed, it took this" : " takes this much";
    const block = place.tall && itself(seen) ? `, <tspan class="itself">■ ${place.brief ? "" : "from "}itself</tspan>` : "", who = `ayer ${layer + 1}, head ${head + 1}`;
    const plain = told.endsWith("much") && !block, first = plain && scene === 0 && atStart() ? `, one of ${LAYERS * HEADS} heads that look back` : "";
    place.label.innerHTML = place.brief && waits && !block ? "Your pick is in scene 1" : `L${who}${first && `${first}${place.tall ? "" : ","}`}${place.brief || (first && place.tall) ? "" : told}${block || (plain && !place.tall ? " from each word" : "")}`;
    // measured of the model as trained, of the last word
    if (priced() && !removed()) place.label.innerHTML = `Without l${who}: ${pct(item.next[0][1] - cost(layer, head))} sure${block || `, with it ${pct(item.next[0][1])}`}`;
    $("head-says").innerHTML = headSays(seen);
    if (scene === 1) workings(seen);
    $("slider-says").innerHTML = effect(seen);
    $("turned").innerHTML = turned(seen);
    $("division").innerHTML = division(seen);
    const known = mistakes[state.way];
    $("break-says").innerHTML = known ? `${known.line} ${effect(seen)} ${known.link}` : "";
  }

  function goesOn() {
    // how the model goes on, and what it thinks of the sentence
    const { writes: text, loss } = said(), right = asTrained();
    if (text === undefined) return item.own ? "It writes …" : "";
    const on = `After the sentence it writes: “<b class="n">${escaped(text.trimStart().replace(/\s*\n\s*/g, " ↵ "))}</b> …”`;
    if (!mistaken() || loss === null || right.loss === undefined) return on;
    const cheats = state.way === "no causal mask" && loss < right.loss ? ": it has seen the answers" : "";
    return `${on} At each word of the sentence it guesses the next: as trained it gives the right one, on average, a chance of ${chance(right.loss)}; now of ${chance(loss)}${cheats || (loss > right.loss ? ", which is worse" : "")}.`;
  }

  function chance(loss) {
    // what a mean surprise is as a chance, in two digits
    const n = Number(Math.exp(loss).toPrecision(2));
    return `1 in ${n.toLocaleString("en")}`;
  }

  function piece(token) {
    // what to add where the next token is no whole word, as the text that follows shows
    const [whole] = said().writes?.trim().match(/^\p{L}+/u) ?? [""];
    return !goesInto(token) && whole.startsWith(token.trim()) && whole !== token.trim() ? `, the first piece of ${escaped(whole)}` : "";
  }

  const quoted = (html) => (/^(<[^>]*>)?\p{Ll}/u.test(html) && !Object.values(SIGNS).some((sign) => html.includes(sign)) ? `“${html}”` : html);

  function verdict() {
    const [token, p] = said().next[0], word = SIGNS[token.trim()] ?? wordOf(token), guess = guesses[item.id];
    const says = `${quoted(`<b class="n">${word}</b>`)}${piece(token)}`, trained = asTrained().next?.[0][0];
    const changed = !unchanged() || removed();
    const yes = guess && `You said ${quoted(escaped(guess))}.`;
    if (p < UNSURE) return `${changed ? "Now the model" : guess ? `${yes} The model` : "The model"} does not know.`;
    if (changed) return token === trained ? `Still ${says}.` : `Now the model says ${says}.`;
    return !guess ? `The model says ${says}.` : guess === token.trim() ? `${yes} So does the model.` : `${yes} The model says ${says}.`;
  }

  const asLink = (line) =>
    escaped(line)
      .replace(/\*([^*]+)\*/g, (_, word) => `<b class="${word === item.words.at(-1).trim() ? "q" : "k"}">${word}</b>`)
      .replace(/\{(\d+)\.(\d+)\.(\d+)\.(\d+)\}/g, (_, layer, head, query, key) => {
        const w = weights(layer - 1, head - 1, Number(query))[key];
        return `<button class="link" data-head="${[layer, head, query, key]}" title="layer ${layer}, head ${head}">${pct(w)}</button>`;
      })
      .replace(/\{without (\d+)\.(\d+)\}/g, (_, layer, head) => {
        const right = item.next[0][0];
        return pct(withoutHead(layer - 1, head - 1).next.find(([token]) => token === right)?.[1] ?? 0);
      })
      .replace(/\{(\d+)\|([^}]+)\}/g, '<button class="link" data-query="$1">$2</button>');

  function line() {
    if (!item.own) return asLink(item.line);
    if (item.reading) return "";
    const [layer, head, key] = item.start;
    const [word] = asTrained().next[0];
    return `Of all ${LAYERS * HEADS} heads, layer ${layer}, head ${head} adds most to <b class="n">${wordOf(word)}</b>, by what it takes of ${key === null ? "one word" : mark(key)}: your sentence starts with it, ours with a head that we chose. Earlier heads and later layers count, too.`;
  }

  function bars(list, next, press) {
    const word = (token) => (press ? `<button class="link" data-next="${escaped(token)}" title="write it">${wordOf(token)}</button>` : wordOf(token));
    list.innerHTML = next
      .map(([token, p]) => `<li><span>${word(token)}</span><span><i style="width:${Math.max(0.5, p * 100)}%"></i></span><span>${pct(p)}</span></li>`)
      .join("");
  }

  function chart() {
    const first = asTrained().next?.[0][0];
    if (!first || scene !== 1) return;
    const nexts = STOPS.map((_, i) => (item.own ? item.read[readKey("whole", i)]?.next : item.stops[i].next));
    const sure = nexts.map((next) => next && (next.find(([token]) => token === first)?.[1] ?? 0));
    const wide = $("chart").clientWidth || 480, step = (wide - 16) / (STOPS.length - 1); // its dots stand above the slider's stops
    const x = (i) => Math.round(8 + i * step), y = (p) => 82 - 66 * p, at = sure[state.stop];
    $("chart").setAttribute("viewBox", `0 0 ${wide} 90`);
    $("chart-says").innerHTML = `How sure of <b class="n">${wordOf(first)}</b> the model is`;
    const known = many(STOPS.length).filter((i) => sure[i] !== undefined);
    if (known.length < STOPS.length) $("chart-says").innerHTML = `How sure of <b class="n">${wordOf(first)}</b> it is: ${known.length} of ${STOPS.length} dots are read`;
    const dots = known.map((i) => `<circle cx="${x(i)}" cy="${y(sure[i])}" r="${i === state.stop ? 7 : 4}" class="d${i === state.stop ? " now" : ""}"/>`);
    // At the side where the curve is lower. A word that is none of the first five has less than the last of them.
    const [left, right] = [-1, 1].map((step) => (sure[state.stop + step] ?? at) - at), side = Math.max(left, right) < 0.02 ? 0 : left > right ? 1 : -1;
    const put = `x="${Math.min(wide - [18, 40][Math.abs(side)], Math.max(18, x(state.stop) - 2 * side))}" text-anchor="${["end", "middle", "start"][side + 1]}"`;
    const label = at !== undefined ? `<text class="now" y="${Math.max(12, y(at) - 12)}" ${put}>${at ? pct(at) : `&lt;${Math.ceil(100 * nexts[state.stop].at(-1)[1])}\u00a0%`}</text>` : "";
    $("chart").innerHTML = `<path d="M0 82H${wide}M0 16H${wide}" class="e"/><text x="${wide}" y="11" text-anchor="end">100 %</text><path class="l" d="${known.map((i) => `${sure[i - 1] === undefined ? "M" : "L"}${x(i)} ${y(sure[i])}`).join("")}"/>${dots.join("")}${label}`;
  }

  // --- how the head comes to its percentages: from queries and keys, where they are stored, or from the scores alone

  const numbers = (letters) => Array.from(letters, (letter) => 2 * CODE[letter] - 1);
  const signed = (x, digits) => x.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");

  function power(x) {
    // e^x, short
    if (x > 13.8) return `${Math.exp(x).toExponential(2).replace(/e\+(\d+)/, "·10<sup>$1</sup>")}`;
    const e = Math.exp(x);
    return e >= 100 ? Math.round(e).toLocaleString("en") : e >= 10 ? e.toFixed(1) : e.toFixed(2);
  }

  function strip(list, kind, most) {
    // a bar for each number, up or down
    const bar = (x, i) => `M${8 * i} 16V${(16 - (15 * x) / most).toFixed(1)}h6V16z`;
    const half = (sign) => list.map((x, i) => (x * sign > 0 ? bar(x, i) : "")).join("");
    return `<svg class="${kind}" viewBox="0 0 ${8 * list.length - 2} 32" preserveAspectRatio="none"><path class="up" d="${half(1)}"/><path class="down" d="${half(-1)}"/></svg>`;
  }

  const atStart = () => !item.own && !pointed && String([state.layer + 1, state.head + 1, state.query]) === String([item.start[0], item.start[1], last()]);

  const stopShown = () => item.workings.stops[state.stop];

  function workings(seen) {
    const kept = item.workings, root = Math.sqrt(STOPS[state.stop]), by = root % 1 ? root.toFixed(3) : root;
    const one = atStart() && stopShown();
    const order = seen.map((_, j) => j).sort((a, b) => seen[b] - seen[a]), words = one ? kept.words : order.slice(0, 2);
    // Where scores are not stored, they are counted from the largest: percentages tell no more.
    const scores = one ? one.scores : seen.map((w) => Math.log(Math.max(w, 1e-9) / seen[order[0]]) * root);
    // Each number follows from those that are printed before it.
    const exps = scores.map((score) => Number((score.toFixed(2) / by).toFixed(3))), others = seen.map((_, j) => j).filter((j) => !words.includes(j));
    const times = (all) => Math.exp(all.reduce((sum, j) => sum + seen[j] * kept.lifts[j], 0));
    const told = one && unchanged(); // its room stays
    const inDigits = (x) => x.toFixed(x < 9.95 ? 1 : 0), lift = (all) => (told ? `<span class="v">× ${inDigits(times(all))}</span>` : one ? "<span></span>" : "");
    const some = (p) => pct(p || 0.001); // a stored row has two digits, and no share is 0
    const total = (all) => { const top = Math.max(...all.map((j) => exps[j])); return top + Math.log(all.reduce((sum, j) => sum + Math.exp(exps[j] - top), 0)); };
    const parts = [...words.map((j) => exps[j]), ...(others.length ? [total(others)] : [])], whole = Math.max(...parts) > 13.8 ? total(order) : Math.log(parts.reduce((sum, x) => sum + Number(power(x).replaceAll(",", "")), 0));
    const share = (p) => `<span class="share"><span><i style="width:${Math.max(1, 100 * p)}%"></i></span><b>${some(p)}</b></span>`;
    // Of the products the largest are drawn, and what they are made of, from what adds most for the first word.
    const [q, ...keys] = one ? [one.query, ...one.keys].map(numbers) : [], products = keys.map((k) => k.map((x, i) => x * q[i]));
    const large = one && q.map((_, i) => i).sort((a, b) => Math.abs(products[0][b]) + Math.abs(products[1][b]) - Math.abs(products[0][a]) - Math.abs(products[1][a]));
    const drawn = one && large.slice(0, DRAWN).sort((a, b) => products[0][b] - products[0][a]), bars = (list, kind) => strip(drawn.map((i) => list[i]), kind, Math.max(...(kind === "product" ? products.flat() : list).map(Math.abs)));
    const asks = `<b class="q">${shown(item.words[state.query])}</b>`;
    const brief = (j) => named(j).replace(/^the (first|second|third|fourth) /, (_, nth) => `${{ first: "1st", second: "2nd", third: "3rd", fourth: "4th" }[nth]} `);
    const rows = words.map((j, i) => `<span class="who"><b class="k">${brief(j)}</b>${one ? `’s key<small>query × key</small>` : ""}</span>${one ? `<span class="strip">${bars(keys[i], "key")}${bars(products[i], "product")}</span>` : ""}<span class="score">${signed(scores[j], 2)}</span><span>${signed(exps[j], 3)}</span><span>${power(exps[j])}</span><b>${some(seen[j])}</b>`);
    const left = others.reduce((sum, j) => sum + seen[j], 0), called = `${others.length} other word${others.length > 1 ? "s" : ""}`;
    const rest = others.length ? `<span class="who quiet wide">${called}</span><span class="gap"></span><span class="gap"></span><span>${power(total(others))}</span><b>${pct(left)}</b>` : "";
    const answer = one && `<b class="n">${escaped(kept.answer.trim())}</b>`, row = (name, p, all) => `<span class="who">${name}</span>${share(p)}${lift(all)}`;
    const head = `<span class="who">${asks}${one ? "’s query" : ""}</span>${one ? `<span class="strip">${bars(q, "query")}</span>` : ""}<span>score</span><span>÷ ${by}</span><span>exp</span><span>÷ ${power(whole)}</span>`;
    $("taken").className = one ? "" : "short";
    $("taken").innerHTML = `<span class="who">word</span><span class="who">${asks} takes</span>${one ? `<span${told ? "" : " style=visibility:hidden"}>${answer} gets likelier</span>` : ""}${words.map((j) => row(`<b class="k">${brief(j)}</b>`, seen[j], [j])).join("")}${others.length ? row(called, left, others) : ""}`;
    $("lifts").style.visibility = one && !told ? "hidden" : "";
    $("lifts").innerHTML = one ? `What is taken of ${mark(words[0])}’s <b class="v">value</b> would alone make ${answer} ${inDigits(times([words[0]]))} times as likely, against an average word. What this leaves out is told with the sums.` : "How much likelier each makes the answer is worked out for our sentences only.";
    $("finds").innerHTML = item.finds ? asLink(item.finds) : "Nobody wrote down what this head looks for: training found its numbers.";
    $("works").className = one ? "" : "short";
    $("works").innerHTML = head + rows.join("") + rest;
    $("works-say").innerHTML = one
      ? `A score: the 64 numbers of the query × the 64 of the key, added up. Drawn are the ${DRAWN} that count most.${told ? "" : " The heads of the layers before divide by another number, too, so these 64 are not those as trained."}`
      : "The scores, counted from the largest: only differences matter.";
    const odds = (p) => p / (1 - p), p = told && item.next[0][1], after = told && p - cost(state.layer, state.head);
    $("lifted").innerHTML = told ? `“× ${inDigits(times([words[0]]))}” holds if no later layer changes what is taken: e to the power of what it adds to the logit of ${answer}, above the mean of all tokens. Removing the whole head is measured through all later layers: ${pct(after)} sure without it, ${pct(p)} with it, which is odds × ${inDigits(odds(p) / odds(after))}.` : "";
  }

  function update(grow) {
    const waits = asks(), { next } = said();
    $("look").classList.toggle("waiting", waits);
    $("look").classList.toggle("arrive", Boolean(grow) && !waits);
    $("look").classList.toggle("stale", !waits && Boolean(item.reading || !got()));
    $("look").classList.toggle("unread", !waits && !next);
    $("look").classList.toggle("reread", open() && !got());
    if (!next) $("goes-on").textContent = "";
    if (item.reading || (!waits && !next)) document.querySelector("#answer .said").innerHTML = item.reading && !ready ? "Your sentence is not read yet." : item.reading ? "The model reads your sentence." : ready ? "The model reads again." : "Not read so: load the model (scene 4).";
    if (waits) question();
    for (const word of place.words) if (!waits) word.setAttribute("aria-disabled", lastAlone());
    if (!open())
      place.words.forEach((word, j) => {
        word.setAttribute("aria-label", item.words[j].trim());
        word.setAttribute("class", item.reading && j >= item.count ? "word later" : "word");
      });
    if (open()) {
      // while it is read again, what it says as trained
      const words = next ?? asTrained().next, p = words[0][1], lost = p < UNSURE;
      if (next) document.querySelector("#answer .said").innerHTML = verdict();
      $("answer").classList.toggle("lost", lost);
      document.querySelector("#answer .sure").innerHTML = `${pct(p)} <span>${lost ? "at best." : p < 0.5 ? "likely." : "sure."}</span>`;
      bars(document.querySelector("#answer .bars"), words, ready);
      if (next) $("goes-on").innerHTML = goesOn();
    }
    bars($("trained-words"), (open() && asTrained().next) || []);
    bars($("broken-words"), (open() && mistaken() && next) || []);
    if (place.sure) place.sure.textContent = open() && next ? pct(next[0][1]) : "";
    if (place.gap) place.gap.textContent = open() && next ? next[0][1] < UNSURE ? "?" : (goesInto(next[0][0]) ? "…" : "") + drawnAs(next[0][0]) : "";
    $("line").innerHTML = line();
    $("broken-name").textContent = mistaken() ? mistakes[state.way].term.replace(/^./, (c) => c.toUpperCase()) : "Nothing is broken yet";
    for (const button of $$("#mistakes button:not(#mend)")) button.setAttribute("aria-pressed", button.value === state.way);
    $("mend").disabled = !mistaken();
    $("remove").textContent = removed() ? "Put it back" : "Remove this head";
    $("remove").hidden = !item.own && !item.without;
    $("costs").hidden = !item.without;
    $("exchange").hidden = !["mary", "john"].includes(item.id);
    $("exchange").textContent = item.id === "mary" ? "Let Mary give the drink" : "Let John give the drink";
    const d_k = STOPS[state.stop], root = Math.sqrt(d_k), by = root % 1 && root < 10 ? root.toFixed(1) : Math.round(root);
    $("d_k").value = state.stop;
    $("d_k").setAttribute("aria-valuetext", `d_k = ${d_k}`);
    $("d_k-value").textContent = d_k;
    $("d_k-root").textContent = d_k === TRAINED ? by : `${by}, not 8`;
    $("ours").value = item.id ?? "";
    $("next").textContent = scene < 3 ? `Next: ${$$("[role=tab]")[scene + 1].textContent.slice(4).toLowerCase()} →` : "Next: the course ↓";
    marked();
    tell(grow);
    chart();
    $("copy").href = link();
    if (open()) history.replaceState({ guesses }, "", link()); // what was guessed outlasts a reload, and is not shared
    pump();
  }

  function question() {
    document.querySelector(".lead").textContent = `${item.lead ?? item.ask} Guess first, then see which words the model looked at.`;
    $("guess").replaceChildren(
      ...item.guess.map((guess) => {
        const button = Object.assign(document.createElement("button"), { textContent: guess });
        button.addEventListener("click", () => {
          guesses[item.id] = guess;
          layout();
          update(true);
          place.words[state.query].focus({ preventScroll: true });
          if ($("answer").getBoundingClientRect().top < 0) scrollTo(0, 0);
        });
        return button;
      }),
    );
  }

  function link() {
    const { layer, head, query, stop, way } = state, from = item.own ? { t: item.text } : { s: item.id };
    const parts = { ...from, l: layer + 1, h: head + 1, q: query, d: STOPS[stop], ...(way !== "whole" && { w: way }) };
    return `#${new URLSearchParams(parts)}`;
  }

  function choose(change) {
    if (!open()) return;
    pointed = null;
    light(null);
    Object.assign(state, change);
    settle(change);
    update();
  }

  const elsewhere = () => yours && ["layer", "head", "query"].some((one) => yours[one] !== state[one]);

  function settle(change) {
    // scenes 2 and 3, and what is recorded for one head and the last word alone, show them; then what was picked comes back
    const { layer, head, query, key } = state;
    reminds = !yours && (fixed() || pinned());
    if (fixed() || pinned()) {
      yours ??= { layer, head, query, key };
      Object.assign(state, { layer: item.start[0] - 1, head: item.start[1] - 1, key: item.start[2] });
    } else if (yours) {
      Object.assign(state, yours, change);
      yours = null;
    }
    if (lastAlone()) state.query = last();
    if (state.key >= state.query) state.key = null;
  }

  function turn(to) {
    // to another scene: what the scene before has changed is as trained again
    scene = to;
    const tabs = $$("[role=tab]"), top = tabs[to].getBoundingClientRect().top;
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === to);
      tab.tabIndex = i === to ? 0 : -1;
    });
    $$(".scene").forEach((panel, i) => (panel.hidden = i !== to));
    if (!place?.tall) return stay();
    const shown = drawn;
    layout();
    drawn = shown && place.us[state.query] ? { ...shown, u: place.us[state.query] } : null;
    scrollBy(0, tabs[to].getBoundingClientRect().top - top); // what is pressed stays under the finger
  }

  function begin(grow, restored) {
    // from the head and the word that a sentence starts with, or what a link asks for
    const [layer, head, key] = item.start;
    pointed = lit = yours = null;
    state = { layer: layer - 1, head: head - 1, key, query: last(), stop: AS_TRAINED, way: "whole" };
    if (restored) Object.assign(state, restored());
    turn(back?.scene ?? (mistaken() ? 2 : state.stop !== AS_TRAINED ? 1 : item.own && !restored ? 3 : 0));
    settle();
    layout();
    update(grow);
    if (back) scrollTo(0, back.y);
    back = null;
  }

  let asking = 0; // counts the sentences asked for: one that comes late replaces none asked for later

  async function show(id, restored, pressed) {
    const mine = ++asking, field = $("typed"), typed = field?.value;
    try {
      loaded[id] ??= await (await fetch(catalogue.find((known) => known.id === id).file)).json();
    } catch {
      if (mine === asking) says("This sentence could not be fetched. Fix: connect, and press again.");
      return;
    }
    if (mine !== asking) return;
    item = loaded[id];
    // What somebody waits for stays, and what was typed while this came.
    if (field && !loading && field.value === typed) field.value = item.words.join("");
    begin(true, restored);
    if (pressed) {
      history.replaceState({ guesses }, "", link());
      if (asks()) {
        $("guess").focus({ preventScroll: true });
        scrollTo(0, 0);
      }
    }
  }

  // --- one's own sentence: Python and the model in a worker, once somebody asks for them

  const { megabytes, ...places } = writes ?? {}, MB = { python: megabytes, model: 93 };
  let counted = 0; // words read, where a sentence is read again
  let worker, ready = false, loading = null, pending = null, before;
  let wanted = null; // what a link asks of a sentence that is not read

  const says = (text) => ($("said").textContent = text);
  const limit = "At most 32 tokens, about 24 words.";
  const hint = `${limit} ${upright.matches ? "The model takes 0.7 GB of memory: a phone may close this tab." : "SmolLM2: 135 million numbers, made for small machines."}`;

  function readLine() {
    // what is said beside the field once a sentence is read: the answer may be out of sight
    const next = said().next?.[0];
    return item.own && next ? `Read. It says ${SIGNS[next[0].trim()] ?? drawnAs(next[0])}, ${pct(next[1])} sure. The picture shows the head that adds most to this answer. ${ready ? "Press one of its next words and it goes on." : ""}` : hint;
  }

  function typing() {
    // what is said while somebody types
    const count = $("typed").value.match(/\S+/g)?.length ?? 0, starts = item.words.slice(0, 3).join("").trim();
    const long = count > 24 ? ` ${count} words may be too many: ${limit.toLowerCase()}` : "";
    return marked() ? `Not read yet: the picture still shows “${starts} …”.${long}` : readLine();
  }

  function marked() {
    // whether the field holds another sentence than the picture
    const other = writes && $("typed").value.trimEnd() !== (item.text ?? item.words.join("")).trimEnd();
    $("typed")?.classList.toggle("other", Boolean(other));
    return other;
  }

  function ask(way, d_k, writes) {
    const asked = { text: item.text, way, d_k, writes };
    if (JSON.stringify(asked) === JSON.stringify(pending)) return;
    pending = asked;
    worker.postMessage({ asked });
  }

  function pump() {
    // Ask for what is missing: first what is shown, then how it goes on, then the other stops of the whole model.
    if (!item.own || !ready) return;
    const { way, stop } = state;
    const d_k = mistaken() ? TRAINED : STOPS[stop];
    if (item.reading) return ask("whole", TRAINED, true);
    if (removed()) return got() || ask(wayAsked(), TRAINED, false);
    if (!got() || said().writes === undefined) return ask(way, d_k, true);
    if (asTrained().writes === undefined) return ask("whole", TRAINED, true);
    if (scene !== 1) return;
    const near = STOPS.map((_, i) => i).sort((a, b) => Math.abs(a - stop) - Math.abs(b - stop));
    const missing = near.find((i) => !item.read[readKey("whole", i)]?.maps);
    if (missing !== undefined) ask("whole", STOPS[missing], false);
  }

  function read(text) {
    // show a sentence of one's own: its words turn dark as they are read
    asking++;
    if (!item.reading) before = item;
    says(ready || owns[text] ? "Reading." : $("said").textContent);
    item = owns[text] ??= { own: true, text, words: text.match(/\s*\S+/g), read: {}, reading: true, count: 0, start: [1, 1, null] };
    begin(true, item.reading ? undefined : restoring());
  }

  function restoring() {
    const asked = wanted?.get("t").trimEnd() === item.text && wanted;
    wanted = null;
    return asked && (() => restored(asked));
  }

  function addsMost(lifts) {
    // The head that adds most to the answer by what it takes of one word. Neither the first word counts, on which heads
    // rest, nor the last itself.
    const n = last() + 1, [most] = many(lifts.length).filter((i) => i % n && i % n < last()).sort((a, b) => lifts[b] - lifts[a]);
    const head = Math.floor((most ?? 0) / n);
    return [Math.floor(head / HEADS) + 1, (head % HEADS) + 1, most === undefined ? null : most % n];
  }

  function hear({ data: { told, loaded: here, failed, asked, words, count, next, maps, lifts, writes: text, loss } }) {
    if (told) progressed(told);
    if (here) {
      ready = true;
      become("ready");
      read($("typed").value.trimEnd());
    }
    if (failed) {
      pending = null;
      // What a browser says of an address that gives nothing is no sentence for a reader.
      const lost = !ready && !failed.includes("Fix:") && /fetch|import|network|load failed/i.test(failed);
      says(lost ? "The model could not be loaded. Fix: connect to the internet, and press again." : failed);
      if (!ready) become("idle");
      else if (item.reading) {
        delete owns[item.text];
        item = before;
        begin(false);
        turn(3); // beside the field, where it is said why
      }
    }
    const mine = asked && owns[asked.text];
    if (!mine) return;
    const kept = (mine.read[`${asked.way}:${asked.d_k}`] ??= {});
    if (count) Object.assign(mine, { words, count });
    if (maps) Object.assign(kept, { next, maps: new Float32Array(maps.buffer) });
    if (text !== undefined) Object.assign(kept, { writes: text, loss });
    if (maps ? !asked.writes : text !== undefined) pending = null;
    if (maps && mine.reading) {
      mine.reading = false;
      if (mine !== item) return;
      mine.start = addsMost(new Float32Array(lifts.buffer));
      begin(true, restoring());
      says(readLine());
      const { top, bottom } = $("answer").getBoundingClientRect(), field = $("look").getBoundingClientRect();
      if (document.hidden || field.bottom < 0) return notify(); // who reads on below is not torn away
      if (top < 0 || bottom > innerHeight) toAnswer();
      return;
    }
    if (mine !== item) return;
    if (count && mine.reading) {
      says(`Reading: ${count} of ${words.length}.`);
      if (place.words.length !== words.length) begin();
      else update();
    } else if (count && !got()) {
      counted = count;
      says(`Reading again: ${count} of ${words.length}.`);
      tell();
    } else {
      counted = 0;
      if (got() && !marked()) says(readLine());
      update();
    }
  }

  const toAnswer = () => $("answer").scrollIntoView({ block: "start", behavior: still.matches ? "auto" : "smooth" });
  const title = document.title;

  function notify(telling = true) {
    // that a sentence is read is said in the tab, and where one reads on below
    document.title = telling ? `Read: ${drawnAs(said().next[0][0])} · ${title}` : title;
    $("notice").hidden = !telling;
  }

  $("notice").addEventListener("click", () => (notify(false), toAnswer()));
  document.addEventListener("visibilitychange", () => !document.hidden && $("look").getBoundingClientRect().bottom > 0 && notify(false));
  addEventListener("scroll", () => !$("notice").hidden && $("answer").getBoundingClientRect().bottom > 0 && notify(false), { passive: true });

  function progressed(told) {
    const [, mb, all] = (told.match(/^(\d+) of (\d+) MB/) ?? []).map(Number), python = Number(told.match(/^Python: (\d+)/)?.[1] ?? 0);
    const steps = { "Loading P": 0.01, "Starting ": 0.12, "Loading 9": 0.14, Unpacking: 0.85, "Storing i": 0.9, "Reading t": 0.93 };
    const share = mb ? 0.14 + (0.71 * mb) / all : python ? 0.01 + 0.1 * Math.min(1, python / MB.python) : steps[told.slice(0, 9)];
    if (share) $("bar").value = share;
    loading.since ??= mb && { time: performance.now(), mb };
    const { since } = loading, rate = since && (mb - since.mb) / (performance.now() - since.time);
    // Nobody knows here how fast this machine unpacks and reads: only of what is loaded it is said.
    const far = mb ? `${MB.python + mb} of ${MB.python + all} MB loaded.` : told === "Loading Python." ? "Loading Python, then the model." : python ? `${python} of ${MB.python + MB.model} MB loaded. Python starts, in some 20 s, on a slow machine in a minute; then the model is loaded.` : told;
    says(far + (rate > 0 ? ` About ${Math.ceil((all - mb) / rate / 1000)} s more to load; unpacking and reading take up to a minute.` : ""));
  }

  const since = () => ($("since").textContent = loading ? `${Math.round((performance.now() - loading.start) / 1000)} s so far.` : ""); // moves while nothing else does

  function become(now) {
    // idle, loading or ready
    if (now === "idle") worker = worker?.terminate();
    $("own").dataset.state = now;
    $("press").textContent = { idle: `Load the model, ${MB.python + MB.model} MB`, loading: "Cancel", ready: "Read it" }[now];
    $("bar").value = 0;
    clearInterval(loading?.clock);
    loading = now === "loading" ? { start: performance.now(), clock: setInterval(since, 1000) } : null;
    since();
  }

  function press() {
    const text = $("typed").value.trimEnd(), now = $("own").dataset.state;
    if (!text.trim()) return says("Type a few words to begin with.");
    if (now === "ready") return read(text);
    if (now === "loading") {
      become("idle");
      return says("Cancelled. Nothing is kept.");
    }
    become("loading");
    const whole = (path) => new URL(path, location).href;
    worker = new Worker("write/worker.js", { type: "module" });
    worker.onmessage = hear;
    worker.onerror = () => hear({ data: { failed: "The browser could not start Python here. Fix: a current browser." } });
    worker.postMessage({ load: Object.fromEntries(Object.entries(places).map(([name, path]) => [name, whole(path)])) });
  }

  if (writes) {
    says(hint);
    become("idle");
    $("press").addEventListener("click", press);
    // Enter reads, but loads nothing: it leads to the button that does, and held down it does not press it.
    $("own").addEventListener("submit", (event) => {
      event.preventDefault();
      if (ready) return press();
      if (loading) return;
      $("press").focus();
      says("Reading it takes the model: this button loads it.");
    });
    $("press").addEventListener("keydown", (event) => event.repeat && event.preventDefault());
    $("typed").addEventListener("input", () => {
      const told = typing();
      if (!loading && $("said").textContent !== told) says(told);
    });
    $("typed").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!event.repeat) $("own").requestSubmit();
    });
    document.querySelector("#answer .bars").addEventListener("click", ({ target: { dataset } }) => {
      if (!dataset.next) return;
      $("typed").value = item.words.join("") + dataset.next;
      read($("typed").value);
    });
  }

  // --- controls and links

  $$("[role=tab]").forEach((tab, i, tabs) => {
    tab.addEventListener("click", () => {
      if (i === scene) return;
      turn(i);
      if (open()) choose({ stop: AS_TRAINED, way: "whole" });
      else update();
      // On a phone the scene without a picture that stays may lie below the screen.
      if (upright.matches && i === 3 && $("scene-4").getBoundingClientRect().top > innerHeight - 240) tab.parentElement.scrollIntoView({ block: "start" });
    });
    tab.addEventListener("keydown", ({ key }) => {
      const to = { ArrowRight: 1, ArrowLeft: -1 }[key];
      if (!to) return;
      const next = tabs[(i + to + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  });
  $("next").addEventListener("click", () => {
    const to = $$("[role=tab]")[scene + 1];
    if (!to) return document.querySelector('.bar a[href="#course"]').click();
    to.click();
    to.focus({ preventScroll: true });
    if (!upright.matches && $("row").getBoundingClientRect().top < 0) scrollTo(0, 0); // the picture stays in view
    const above = svg.classList.contains("stays") ? svg.getBoundingClientRect().bottom : 0;
    if (to.getBoundingClientRect().top < above) to.scrollIntoView({ block: "start" });
  });
  $("sums").addEventListener("toggle", () => $("sums").open && $("sums").scrollIntoView({ block: "nearest" }));
  $("d_k").addEventListener("input", ({ target }) => choose({ stop: Number(target.value) }));
  let held = AS_TRAINED; // a swipe across the slider scrolls, and moves nothing
  $("d_k").addEventListener("pointerdown", () => (held = state.stop));
  $("d_k").addEventListener("pointercancel", () => choose({ stop: held }));
  for (const button of $$("#mistakes button")) button.addEventListener("click", () => choose({ way: button.value, stop: AS_TRAINED }));
  $("costs").addEventListener("click", () => {
    costs = !costs;
    choose({ query: last(), way: "whole" }); // each removal is recorded for the last word
  });
  $("remove").addEventListener("click", () => choose({ way: removed() ? "whole" : "without" }));
  $("exchange").addEventListener("click", () => {
    const other = item.id === "mary" ? "john" : "mary";
    guesses[other] ??= ""; // one question was enough: the answer is seen beside the button
    show(other, undefined, true);
  });
  $("ours").addEventListener("change", ({ target }) => {
    if (!loading && writes) says(hint); // what was said of the sentence before
    show(target.value, undefined, true);
  });
  for (const id of ["head-says", "break-says"]) {
    $(id).addEventListener("pointerover", (event) => light(event.target.dataset.word ? Number(event.target.dataset.word) : null));
    $(id).addEventListener("pointerleave", () => light(null));
  }
  $("line").addEventListener("click", ({ target: { dataset } }) => {
    if (dataset.query) return choose({ query: Number(dataset.query), key: null, way: "whole" });
    if (!dataset.head) return;
    const [layer, head, query, key] = dataset.head.split(",").map(Number);
    choose({ layer: layer - 1, head: head - 1, query, key, stop: AS_TRAINED, way: "whole" });
  });
  $("copy").addEventListener("click", async (event) => {
    event.preventDefault();
    const { href } = event.target;
    try {
      await navigator.clipboard.writeText(href);
      $("copied").textContent = "Copied.";
    } catch {
      $("copied").textContent = href; // where a page may not write there, a reader can
    }
  });

  addEventListener("beforeprint", () => !asks() && !place.tall && svg.setAttribute("viewBox", `0 0 ${svg.clientWidth} ${svg.clientHeight}`));
  addEventListener("afterprint", () => again());
  let width = innerWidth; // a phone changes its height as one scrolls
  const again = () => {
    if (!state) return; // a link's sentence is on its way
    layout();
    update();
  };
  let height = innerHeight;
  addEventListener("resize", () => {
    if (innerWidth === width && (upright.matches || innerHeight === height)) return;
    [width, height] = [innerWidth, innerHeight];
    again();
  });

  function restored(asked) {
    // what a link says of the sentence that is shown, as far as it can be
    const within = (x, most) => Math.min(most, Math.max(0, Number(x) || 0));
    const stop = STOPS.indexOf(Number(asked.get("d"))), way = asked.get("w");
    const query = asked.has("q") ? within(asked.get("q"), last()) : last();
    const place = { layer: within(asked.get("l") - 1, LAYERS - 1), head: within(asked.get("h") - 1, HEADS - 1), query };
    const changed = way in mistakes || way === "without" ? { way } : stop >= 0 && { stop };
    return { ...place, ...(query < last() && { key: null }), ...changed };
  }

  async function start() {
    const asked = new URLSearchParams(location.hash.slice(1)), known = catalogue.find(({ id }) => id === asked.get("s"));
    const text = asked.get("t")?.trimEnd();
    if (text && (writes || owns[text]?.reading === false)) {
      wanted = asked;
      $("typed").value = text;
      if (owns[text]?.reading === false) return read(text), says(readLine());
      says(`This link holds a sentence of somebody's own. ${ready ? "The model reads it." : "Load the model: it reads it here, in this tab."}`);
      return read(text);
    }
    if (known && asked.get("l")) return show(known.id, () => restored(asked));
    await show(known?.id ?? catalogue[0].id);
    if (text) says("This link holds a sentence of its own, and this site has no model to read it.");
  }
  addEventListener("hashchange", () => /^#[st]=/.test(location.hash) && location.hash !== link() && start());
  // A way down the page is no other state: the address stays, and so does what Back comes back to.
  for (const way of $$('a[href="#course"], a[href="#guess"]'))
    way.addEventListener("click", (event) => {
      const to = $(way.hash.slice(1));
      if (!to.offsetParent || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      to.scrollIntoView();
      to.focus({ preventScroll: true });
    });
  addEventListener("pagehide", () => {
    const own = item.own && !item.reading ? { ...item, read: { [`whole:${TRAINED}`]: asTrained() } } : undefined;
    history.replaceState({ guesses, scene, y: scrollY, own }, "");
  });
  if (back) history.scrollRestoration = "manual";
  if (back?.own) owns[back.own.text] = back.own;
  Object.assign(guesses, history.state?.guesses);
  start();
  for (const weight of ["400", "600"]) document.fonts.load(`${weight} 25px "attnlib Serif"`).then(again); // words are as wide as in their own font
}
