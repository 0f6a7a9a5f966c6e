// The sentence at the top of the first page: where each word looks, in every head of the model. Of stored sentences this
// script takes the softmax itself, at the d_k of the slider (tools/record_sentences.py stores the scores). Of one's own
// sentence the weights come from Python: worker.js runs the model, once somebody has asked for it.
// Words, heads and layers count from 0 inside, layers and heads from 1 in what is read and in links.
"use strict"; // also keeps our functions out of the page's global names
{
  const LAYERS = 30, HEADS = 9, TRAINED = 64, FOOT = 214; // FOOT: where ribbons stand on the words, in pixels
  const STOPS = [...Array(11).keys()].map((i) => 2 ** i);
  const LETTERS = [...Array(127).keys()].slice(35).map((i) => String.fromCharCode(i)).filter((c) => !"<\\&".includes(c));
  const CODE = Object.fromEntries(LETTERS.map((c, i) => [c, i / (LETTERS.length - 1)]));
  const $ = (id) => document.getElementById(id);
  const pct = (x) => x.toFixed(2);
  const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const shown = (token) => escaped(token.replace(/\n\s*/, "↵").trim() || "␣").replace(/^([,.;:]|_+)$/, "“$&”");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const upright = matchMedia("(max-width: 900px)");
  const touch = matchMedia("(hover: none)").matches;

  const { sentences: catalogue, groups, mistakes, writes } = JSON.parse($("known").textContent);
  const loaded = { [catalogue[0].id]: JSON.parse($("first-sentence").textContent) }; // of the others: id, name, file
  const owns = {}; // text -> one's own sentence: words, and what was read, by way and d_k
  const guesses = {}; // id -> what was guessed
  let item = loaded[catalogue[0].id];
  // layer, head, query; key: the word that the grid looks for, or null; stop;
  // way: what the slider changes, "head" or "whole"; or the mistake that is made
  let state;
  let pointed = null; // [layer, head] under the mouse
  let lit = null; // the word under the mouse
  let group = null; // the heads that are lit
  let kept = null; // head and word chosen before a reading that is recorded for others alone
  let slid = "head"; // what the slider changed before a mistake was made
  let mended = false; // whether this sentence ended a mistake, or brought the slider back

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

  const open = () => (item.own ? !item.reading : item.id in guesses); // whoever comes by a link guesses first, too
  const last = () => item.words.length - 1;
  const mistaken = () => state.way in mistakes;
  // Of a stored sentence another model is stored with one head and the last word alone.
  // At 64 the whole model is as trained, and that is stored for every head and word.
  const unchanged = () => state.way === "head" || (state.way === "whole" && STOPS[state.stop] === TRAINED);
  const fixed = () => !item.own && !unchanged();
  // Without a mask a row reaches beyond its word, where no ribbon goes: the last word's is whole.
  const lastAlone = () => fixed() || state.way === "no causal mask";
  const readKey = (way, stop) => `${way}:${way in mistakes ? TRAINED : STOPS[stop]}`;
  const key = () => readKey(state.way, state.stop);
  const got = () => !item.own || Boolean(item.read[key()]?.maps);

  function said() {
    // what the model says in this state: next words, how it goes on, its loss
    if (item.own) return item.read[state.way === "head" ? `head:${TRAINED}` : key()] ?? {};
    return mistaken() ? item.mistakes[state.way] : state.way === "whole" ? item.stops[state.stop] : item;
  }

  function row(layer, head, query = state.query, another) {
    const asTrained = another && state.way === "head";
    if (item.own) {
      const n = item.words.length, at = ((layer * HEADS + head) * n + query) * n;
      return Array.from(item.read[asTrained ? `head:${TRAINED}` : key()].maps.subarray(at, at + query + 1));
    }
    return weights(layer, head, query, fixed() || asTrained ? TRAINED : STOPS[state.stop]);
  }

  const shownHead = () => pointed ?? [state.layer, state.head];
  const now = () => (fixed() ? said().row : row(...shownHead()));
  // Between the first word and the second stands none, so heads are told by how much they look at the first.
  const looked = () => (lit !== null && lit < state.query ? lit : (state.key ?? (state.query === 1 ? 0 : null)));

  function brightness(layer, head) {
    // The slider changes one head: the others are those of the model as trained.
    const seen = row(layer, head, state.query, String(shownHead()) !== String([layer, head])), key = looked();
    // Where no word is looked for: all that goes to words which are neither the first nor the query itself.
    return key !== null ? (seen[key] ?? 0) : seen.reduce((sum, w, j) => (j && j !== state.query ? sum + w : sum), 0);
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

  const drawnAs = (token) => token.replace(/\n\s*/, "↵").trim();

  function measured(size, room) {
    // where the words stand: u from the left, and in which row
    pen.font = `${size}px system-ui, sans-serif`;
    const gap = size * 0.55, spots = [];
    let x = 8, line = 0, total = 0;
    for (const token of item.words) {
      const wide = pen.measureText(drawnAs(token)).width, blank = spots.length && /^\s/.test(token) ? gap : 0;
      if (x + blank + wide > room && spots.length) [x, line] = [8, line + 1];
      else x += blank;
      x += wide;
      total = Math.max(total, x);
      spots.push({ u: x - wide / 2, wide, line });
    }
    return { spots, total: total + 16, lines: line + 1 };
  }

  function layout() {
    const tall = upright.matches, n = item.words.length, width = $("sentence").clientWidth, room = tall ? 1e6 : width - 216;
    const most = n > 14 ? 3 : 1; // rows
    let size = tall ? 16 : 20, line = measured(size, room);
    while (line.lines > most && size > 13) line = measured((size -= 1), room);
    const step = n > 20 ? 18 : n > 10 ? 24 : 30, bottom = tall ? 110 : FOOT, pitch = line.lines === 2 ? 132 : 84;
    const us = line.spots.map(({ u }, j) => (tall ? j * step + step / 2 : u));
    const bases = line.spots.map(({ line: at }) => (tall ? bottom : bottom - (line.lines - 1 - at) * pitch));
    const wide = tall ? width : line.total, high = tall ? n * step + 6 : FOOT + 64;
    svg.replaceChildren();
    for (const [name, x] of [["width", wide], ["height", high], ["viewBox", `0 0 ${wide} ${high}`]]) svg.setAttribute(name, x);
    $("sentence").style.setProperty("--size", `${size}px`);
    const stays = svg.classList.toggle("stays", tall && high < innerHeight * 0.6); // in view beside the slider and the grid
    document.documentElement.style.scrollPaddingTop = stays ? `${high}px` : ""; // and covers nothing that takes the focus
    const ribbons = element("g", { class: "ribbons" }, svg);
    const words = line.spots.map(({ wide }, j) => {
      const word = element("g", { class: "word", tabindex: 0, role: "button" }, svg), base = bases[j];
      const box = tall ? { x: 0, y: us[j] - step / 2, width: base, height: step } : { x: us[j] - wide / 2 - 3, y: base + 4, width: wide + 6, height: 46 };
      element("rect", { ...box, rx: 4 }, word);
      const name = tall ? { x: base - 6, y: us[j] + size * 0.35, "text-anchor": "end" } : { x: us[j], y: base + 27, "text-anchor": "middle" };
      element("text", { ...name, class: "name" }, word).textContent = drawnAs(item.words[j]);
      element("text", tall ? { class: "weight", x: 2, y: us[j] + 4 } : { class: "weight", x: us[j], y: base + 45, "text-anchor": "middle" }, word);
      word.addEventListener("click", () => choose({ query: j, key: j === state.query ? state.key : null }));
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
    const deep = tall ? wide - bottom - 16 : line.lines > 1 ? pitch - 54 : bottom - 8;
    const longest = line.lines > 1 ? line.total : us.at(-1) - us[0] || 1;
    place = { us, bases, tall, words, paths, full: tall ? 24 : 36, deep, longest };
    drawn = null;
    arrange(tall);
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
    const end = above + 50, middle = (base + end) / 2, k0 = to - size / 2, k1 = to + size / 2, q1 = from + size;
    return `M${from} ${base}C${from} ${middle} ${k0} ${middle} ${k0} ${end}L${k1} ${end}C${k1} ${middle} ${q1} ${middle} ${q1} ${base}Z`;
  }

  function paint({ u, base, row }) {
    // The ribbons leave the query side by side, together as wide as `full`; the nearest key has the innermost place.
    const { us, bases, full, paths, deep, longest, tall } = place;
    let from = u - full / 2;
    for (let j = us.length - 1; j >= 0; j--) {
      const size = row[j] * full, above = !tall && bases[j] < base - 1, itself = !above && us[j] >= u - 1;
      paths[j].setAttribute("class", `${itself ? "itself" : ""}${j === lit ? " lit" : ""}`);
      let d = "";
      if (size > 0.08) {
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
    const start = performance.now(), time = grow ? 600 : 200;
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
      word.setAttribute("class", `word${kind}${j === lit ? " lit" : ""}`);
      number.textContent = !later && w >= 0.05 ? pct(w) : "";
      if (!place.tall && number.textContent) {
        low = Math.abs(place.us[j] - last) < 33 && !low;
        number.setAttribute("y", place.bases[j] + (low ? 60 : 45));
        last = place.us[j];
      }
      const says = j === state.query ? "asks" : later ? "comes later" : `gets ${pct(w)}`;
      word.setAttribute("aria-label", `${item.words[j].trim()}, ${says}`);
      word.setAttribute("aria-pressed", j === state.query);
      word.setAttribute("aria-disabled", lastAlone());
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
  const many = (count) => [...Array(count).keys()];
  for (let i = 0; i < LAYERS * HEADS; i++) cells.push([element("rect", {}, grid), element("rect", { class: "heat", opacity: 0 }, grid)]);
  const ring = element("rect", { class: "ring", rx: 3 }, grid);
  const ticks = [1, 5, 10, 15, 20, 25, 30].map((layer) => [layer, element("text", {}, grid)]);
  const numbers = [1, 5, 9].map((head) => [head, element("text", { x: 10, "text-anchor": "end" }, grid)]);
  let brightest = [0, 0];

  function arrange(tall) {
    // On a phone a row of heads is as high as a finger needs: 24 pixels.
    CELL.y = tall ? (24.5 * 602) / $("sentence").clientWidth : 19; // the grid is as wide
    const high = HEADS * CELL.y + CELL.top;
    grid.setAttribute("viewBox", `0 0 602 ${high + (tall ? 30 : 27)}`);
    cells.forEach((pair, i) => {
      const box = { x: CELL.left + Math.floor(i / HEADS) * CELL.x, y: CELL.top + (i % HEADS) * CELL.y, width: 17, height: CELL.y - 2.5, rx: 2 };
      for (const rect of pair) for (const name in box) rect.setAttribute(name, box[name]);
    });
    for (const [layer, text] of ticks) {
      const first = layer === 1;
      text.setAttribute("x", CELL.left + (first ? 0 : (layer - 0.5) * CELL.x - 1));
      text.setAttribute("y", high + (tall ? 22 : 18));
      text.setAttribute("text-anchor", first ? "start" : layer === LAYERS ? "end" : "middle");
      text.textContent = first ? "layer 1" : layer;
    }
    for (const [head, text] of numbers) {
      text.setAttribute("y", CELL.top + (head - 0.5) * CELL.y + 4);
      text.textContent = head;
    }
    ring.setAttribute("width", 20);
    ring.setAttribute("height", CELL.y + 0.5);
  }

  function colour() {
    const key = looked(), visible = open() && got();
    let most = -1;
    const of = group && groups[group].heads.map(String);
    for (let layer = 0; layer < LAYERS; layer++)
      for (let head = 0; head < HEADS; head++) {
        const x = visible ? brightness(layer, head) : 0, [below, heat] = cells[layer * HEADS + head];
        heat.setAttribute("opacity", (x ** (key === null ? 2 : 0.8)).toFixed(2));
        below.setAttribute("class", of?.includes(String([layer + 1, head + 1])) ? "of" : "");
        if (x > most) [most, brightest] = [x, [layer, head]];
      }
    ring.setAttribute("visibility", open() ? "visible" : "hidden");
    const [layer, head] = shownHead();
    ring.setAttribute("x", CELL.left + layer * CELL.x - 1.5);
    ring.setAttribute("y", CELL.top + head * CELL.y - 1.5);
    [$("at-layer").textContent, $("at-head").textContent] = [layer + 1, head + 1];
    const what = key === null ? "at words between the first and itself" : `at <b class="key">${named(key)}</b>: ${LAYERS * HEADS} heads`;
    const other = fixed() && (mistaken() || STOPS[state.stop] !== TRAINED);
    $("grid-says").innerHTML = open()
      ? `How much <b class="query">${shown(item.words[state.query])}</b> looks ${what}${other ? " as trained" : ""}`
      : item.reading
        ? `${LAYERS * HEADS} heads read along${ready ? "" : " when the model is loaded"}.`
        : `${LAYERS * HEADS} heads look back, each in its own way. Guess first.`;
    grid.classList.toggle("stored", other);
    $("sentence").classList.toggle("fixed", fixed());
  }

  function headAt(event) {
    const box = grid.getBoundingClientRect();
    const layer = Math.floor((((event.clientX - box.left) * 602) / box.width - CELL.left) / CELL.x);
    const head = Math.floor((((event.clientY - box.top) * 602) / box.width - CELL.top) / CELL.y);
    return layer >= 0 && layer < LAYERS && head >= 0 && head < HEADS ? [layer, head] : null;
  }

  function hover(head) {
    if (!open() || fixed() || !got() || String(head) === String(pointed)) return;
    pointed = head;
    tell();
  }

  const keep = ([layer, head]) => choose({ layer, head });
  const moved = (layers, heads) => [(state.layer + layers + LAYERS) % LAYERS, (state.head + heads + HEADS) % HEADS];
  grid.addEventListener("pointermove", (event) => (event.pointerType === "mouse" || event.buttons) && hover(headAt(event)));
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
    return (same.length > 1 ? `the ${["first", "second", "third", "fourth"][same.indexOf(j)]} ` : "") + shown(item.words[j]);
  }

  function tell(grow) {
    colour();
    if (!open()) return;
    if (!got()) {
      $("break-says").textContent = "";
      $("slider-says").textContent = mistaken() ? "The model reads again, with this mistake." : `The model reads again, all heads dividing by √${STOPS[state.stop]}.`;
      return;
    }
    const row = now(), [layer, head] = shownHead();
    morph(row, grow);
    name(row);
    const mark = (j) => `<b class="${j === state.query ? "query" : "key"}" data-word="${j}">${j === state.query ? shown(item.words[j]) : named(j)}</b>`;
    const falling = row.map((w, j) => [w, j]).sort((a, b) => b[0] - a[0]);
    const far = falling.filter(([w, j]) => j && j !== state.query && w >= 0.05).slice(0, 2);
    const rest = state.query ? `${pct(row[0])} on the first word, ${pct(row[state.query])} on itself` : "";
    const parks = !far.length || Math.max(row[0], row[state.query]) > far[0][0];
    const others = far.map(([w, j], i) => `at ${mark(j)} with ${pct(w)}${i ? "" : " of its attention"}`).join(", ");
    const looks = parks ? `${row[0] + row[state.query] > 0.5 ? "mostly rests," : "has"} ${rest}${others && `; it looks ${others}`}.` : `looks ${others}; ${rest}.`;
    $("head-says").innerHTML = `Layer ${layer + 1}, head ${head + 1}: ${mark(state.query)} ${state.query ? looks : "has only itself to look at."}`;
    const most = `Most goes to ${mark(falling[0][1])}: ${pct(falling[0][0])}.`, beside = mistaken() && upright.matches;
    $("slider-says").innerHTML = beside ? "The slider rests while the model is broken." : effect(most);
    $("break-says").innerHTML = beside ? effect(most) : ""; // on a phone the slider is far from these buttons
  }

  function effect(most) {
    // what the slider, or a mistake, has done
    if (mistaken()) return `${mistakes[state.way].line} ${most}`;
    const d_k = STOPS[state.stop], root = Math.sqrt(d_k), by = root % 1 && root < 10 ? root.toFixed(1) : Math.round(root);
    if (d_k === TRAINED) return `To score a word, a head compares <i>d</i><sub>k</sub> = 64 numbers; as trained, the score is divided by √64 = 8. ${mended ? "Each sentence begins like this, with nothing broken." : "The slider changes the divisor alone: the head still compares 64."}`;
    if (state.way === "whole") return `All heads divide by ${by}, not by 8. ${most}`;
    const answer = said().next ? " The next word stays that of the model as trained." : "";
    return `This head divides by ${by}, not by 8, and looks ${d_k < TRAINED ? "sharper: the ribbons gather" : "paler: the ribbons spread"}. ${most}${answer}`;
  }

  function goesOn() {
    // how the model goes on, and what it thinks of the sentence
    const { writes: text, loss } = said(), right = item.own ? item.read[`head:${TRAINED}`] : item;
    if (text === undefined) return item.own ? "It writes on …" : "";
    const on = `It goes on: “<b class="next">${escaped(text.trimStart().replace(/\s*\n\s*/g, " ↵ "))}</b> …”`;
    const known = loss !== null && right.loss !== undefined && (mistaken() || state.way === "whole");
    const cheats = state.way === "no causal mask" && loss < right.loss ? " Lower, since it has seen the answers." : "";
    return on + (known ? ` Its loss (surprise) on the sentence: ${pct(loss)}, as trained ${pct(right.loss)}.${cheats}` : "");
  }

  function piece() {
    // what to add where the next token is no whole word, as the text that follows shows
    const [[token]] = said().next, [whole] = said().writes?.trim().match(/^\p{L}+/u) ?? [""];
    return whole.startsWith(token.trim()) && whole !== token.trim() ? `, the first piece of ${escaped(whole)}` : "";
  }

  function line() {
    // about the sentence as trained; of another model, what can be chosen
    const press = touch ? "Tap" : "Click";
    if (!item.own && !fixed()) return asLink(item.line);
    if (fixed()) {
      const other = writes ? `; with the model loaded and this sentence read, for any head${state.way === "no causal mask" ? "" : " and word"}` : "";
      return `${mistaken() ? "This mistake" : "The whole model"} is recorded for layer ${state.layer + 1}, head ${state.head + 1} and <b class="query">${shown(item.words[state.query])}</b> alone${other}.`;
    }
    if (state.way === "no causal mask") return `Your sentence, read with this mistake: shown for its last word. ${touch ? "Tap" : "Point at"} other heads.`;
    const [layer, head] = item.start;
    const stands = `Your sentence${mistaken() ? ", read with this mistake." : `. Of the 270 heads, layer ${layer}, head ${head} stands out most.`}`;
    return `${stands} ${press} a word, or ${touch ? "tap" : "point at"} other heads.`;
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
    const at = open();
    $("sentence").classList.toggle("waiting", !at);
    for (const chip of $("chips").children) chip.setAttribute("aria-pressed", chip.dataset.id === item.id);
    $("ask").hidden = at || item.reading;
    $("answer").hidden = !at;
    $("blank").className = at ? "said" : "";
    const { next } = said();
    if (at && next) {
      $("blank").innerHTML = shown(next[0][0]);
      const guess = guesses[item.id], says = `The model${mistaken() ? ", broken," : ""} says <b class="next">${shown(next[0][0])}</b>${piece()}.`;
      $("verdict").innerHTML = guess ? `You said ${escaped(guess)}. ${says}` : `${mistaken() ? "Broken, it" : "It"} would write next:`;
      const word = (token) => (ready ? `<button class="link" data-next="${escaped(token)}" title="write it">${shown(token)}</button>` : shown(token));
      $("next-words").innerHTML = next
        .map(([token, p]) => `<li><span>${word(token)}</span><span><i style="width:${Math.max(1, p * 100)}%"></i></span><span>${pct(p)}</span></li>`)
        .join("");
      $("line").innerHTML = line();
      $("line").className = "";
      $("goes-on").innerHTML = goesOn();
    }
    if (!at) {
      $("blank").textContent = "";
      if (!item.reading) question();
      place.words.forEach((word, j) => {
        word.setAttribute("aria-label", item.words[j].trim());
        word.setAttribute("class", item.reading && j >= item.count ? "word later" : "word");
      });
    }
    for (const button of $("way").children) button.setAttribute("aria-pressed", button.value === state.way);
    for (const button of $("mistakes").children) button.setAttribute("aria-pressed", button.value === state.way);
    for (const button of $("groups").children) button.setAttribute("aria-pressed", button.value === group);
    $("group-says").innerHTML = group ? groups[group].line : fixed() ? "" : GROUPS;
    // A mistake is made in the model as trained: the slider rests at its 64, or at none where nothing is divided.
    const d_k = mistaken() ? TRAINED : STOPS[state.stop];
    $("d_k").value = STOPS.indexOf(d_k);
    $("d_k").setAttribute("aria-valuetext", `d_k = ${d_k}`);
    $("d_k-value").textContent = state.way === "no scale" ? "none" : d_k;
    $("slider").classList.toggle("rests", mistaken());
    for (const control of [$("d_k"), ...$("way").children]) control.disabled = mistaken();
    marked();
    [...$("ticks").children].forEach((tick, i) => tick.classList.toggle("there", Boolean(item.own && state.way === "whole" && item.read[readKey("whole", i)]?.maps)));
    tell(grow);
    if (open()) history.replaceState({ guesses }, "", link()); // what was guessed outlasts a reload, and is not shared
    pump();
  }

  function question() {
    const broken = mistaken() ? ` This link breaks the model: ${mistakes[state.way].name}.` : "";
    $("ask").firstElementChild.textContent = item.ask + broken;
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
  }

  function link() {
    const { layer, head, query, stop, way } = state, from = item.own ? { t: item.text } : { s: item.id };
    const parts = { ...from, l: layer + 1, h: head + 1, q: query, d: STOPS[stop], ...(way !== "head" && { w: way }) };
    return `#${new URLSearchParams(parts)}`;
  }

  function choose(change) {
    if (!open()) return;
    if (!("way" in change) && (("query" in change && lastAlone()) || ("layer" in change && fixed()))) {
      light(null);
      $("line").className = "refused"; // nothing is chosen: the line says for which head and word there are numbers
      return;
    }
    pointed = null;
    mended = false;
    light(null);
    const { layer, head, query, key, way } = state, was = lastAlone();
    if (change.way in mistakes && !mistaken()) slid = way;
    Object.assign(state, change);
    if (was && !lastAlone()) Object.assign(state, kept, change);
    else if (!was && lastAlone()) kept = { layer, head, query, key };
    if (lastAlone()) state.query = last();
    if (fixed()) {
      const [layer, head, key] = item.start;
      Object.assign(state, { layer: layer - 1, head: head - 1, key, query: last() });
    }
    if (state.key >= state.query) state.key = null;
    update();
  }

  function begin(grow, restored) {
    // from the head and the word that a sentence starts with, or what a link asks for
    const [layer, head, key] = item.start;
    pointed = lit = null;
    kept = null;
    slid = "head";
    mended ||= Boolean(state) && (state.way !== "head" || STOPS[state.stop] !== TRAINED);
    state = { layer: layer - 1, head: head - 1, key, query: last(), stop: STOPS.indexOf(TRAINED), way: "head" };
    if (restored) Object.assign(state, restored());
    if (fixed()) Object.assign(state, { layer: layer - 1, head: head - 1, key });
    if (lastAlone()) state.query = last();
    layout();
    update(grow);
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
    if (pressed) history.replaceState({ guesses }, "", link());
  }

  // --- one's own sentence: Python and the model in a worker, once somebody asks for them

  const MB = { python: 17, model: 93 };
  let worker, ready = false, loading = null, pending = null, before;
  let wanted = null; // what a link asks of a sentence that is not read

  const says = (text) => ($("said").textContent = text);
  const hint = $("said").textContent;

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
    if (item.reading) return ask("head", TRAINED, true);
    if (!got()) return ask(way, d_k, way !== "head");
    if (said().writes === undefined) return ask(way, way === "head" ? TRAINED : d_k, true);
    if (way !== "head" && item.read[`head:${TRAINED}`].writes === undefined) return ask("head", TRAINED, true);
    if (way !== "whole") return;
    const near = STOPS.map((_, i) => i).sort((a, b) => Math.abs(a - stop) - Math.abs(b - stop));
    const missing = near.find((i) => !item.read[readKey("whole", i)]?.maps);
    if (missing !== undefined) ask("whole", STOPS[missing], false);
  }

  function read(text) {
    // show a sentence of one's own: its words turn dark as they are read
    asking++;
    if (!item.reading) before = item;
    item = owns[text] ??= { own: true, text, words: text.match(/\s*\S+/g), read: {}, reading: true, count: 0, start: [1, 1, null] };
    if (item.reading) pointed = lit = null;
    begin(true, item.reading ? undefined : restoring());
  }

  function restoring() {
    const asked = wanted?.get("t").trimEnd() === item.text && wanted;
    wanted = null;
    return asked && (() => restored(asked));
  }

  function standingOut() {
    // The head that looks hardest at one word, less twice what all heads give that word on average: many heads rest on
    // the first word, and on a second one, too. Neither the first word counts nor the neighbour.
    const rows = many(LAYERS * HEADS).map((i) => row(Math.floor(i / HEADS), i % HEADS, last()));
    let best = [1, 1, null], most = -1;
    for (let j = 1; j < last() - 1; j++) {
      const mean = rows.reduce((sum, seen) => sum + seen[j], 0) / rows.length;
      rows.forEach((seen, i) => {
        if (seen[j] - 2 * mean > most) [most, best] = [seen[j] - 2 * mean, [Math.floor(i / HEADS) + 1, (i % HEADS) + 1, j]];
      });
    }
    return best;
  }

  function hear({ data: { told, loaded: here, failed, asked, words, count, next, maps, writes: text, loss } }) {
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
      says("");
      state.stop = STOPS.indexOf(TRAINED);
      mine.start = standingOut();
      return begin(true, restoring());
    }
    if (mine !== item) return;
    if (count && mine.reading) {
      says(`Reading: ${count} of ${words.length}.`);
      if (place.words.length !== words.length) begin();
      else update();
    } else if (count && !got()) says(`Reading again: ${count} of ${words.length}.`);
    else {
      if (got()) says("");
      update();
    }
  }

  function progressed(told) {
    const [, mb, all] = told.match(/^(\d+) of (\d+) MB/) ?? [];
    const steps = { "Loading P": 0.02, "Loading 9": 0.12, Unpacking: 0.85, "Storing i": 0.9, "Reading t": 0.93 };
    const share = mb ? 0.12 + (0.73 * mb) / all : steps[told.slice(0, 9)];
    if (share) $("bar").value = share;
    loading.since ??= mb && { time: performance.now(), mb };
    const { since } = loading, rate = since && (mb - since.mb) / (performance.now() - since.time);
    says(told + (rate > 0 ? ` About ${Math.ceil((all - mb) / rate / 1000 + 8)} s to go.` : ""));
  }

  function become(now) {
    // idle, loading or ready
    if (now === "idle") worker = worker?.terminate();
    $("own").dataset.state = now;
    $("press").textContent = { idle: `Load the model, ${MB.python + MB.model} MB`, loading: "Cancel", ready: "Read it" }[now];
    $("bar").value = 0;
    loading = now === "loading" ? {} : null;
  }

  function press() {
    const text = $("typed").value.trimEnd(), now = $("own").dataset.state;
    if (!text.trim()) return says("Type a few words to begin with.");
    if (now === "ready") return read(text);
    if (now === "loading") {
      become("idle");
      return says("Cancelled. Nothing is kept.");
    }
    if (upright.matches && now !== "warned") {
      $("own").dataset.state = "warned";
      $("press").textContent = "Load it anyway";
      return says("It takes 0.7 GB of memory: a phone may close this tab.");
    }
    become("loading");
    const whole = (path) => new URL(path, location).href;
    worker = new Worker("write/worker.js", { type: "module" });
    worker.onmessage = hear;
    worker.onerror = () => hear({ data: { failed: "The browser could not start Python here. Fix: a current browser." } });
    worker.postMessage({ load: Object.fromEntries(Object.entries(writes).map(([name, path]) => [name, whole(path)])) });
  }

  if (writes) {
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
      const told = marked() ? "Not read yet: the picture shows another sentence." : hint;
      if (!loading && $("said").textContent !== told) says(told);
    });
    $("next-words").addEventListener("click", ({ target: { dataset } }) => {
      if (!dataset.next) return;
      $("typed").value = item.words.join("") + dataset.next;
      read($("typed").value);
    });
  }

  // --- controls, links, pictures

  for (const { id, name: text } of catalogue) {
    const chip = document.createElement("button");
    Object.assign(chip, { textContent: text });
    chip.dataset.id = id;
    chip.addEventListener("click", () => {
      if (!loading) says(hint); // what was said of the sentence before
      show(id, undefined, true);
    });
    $("chips").append(chip);
  }
  const GROUPS = touch
    ? "Tap a word: then that word looks. Tap a head to see where it looks."
    : "Click a word: then that word looks. Point at a head to see where it looks; a click keeps it.";
  for (const [id, known, chosen] of [
    ["mistakes", mistakes, (name) => choose({ way: name === state.way ? slid : name })],
    ["groups", groups, (name) => { group = name === group ? null : name; update(); }],
  ])
    for (const name in known) {
      const button = Object.assign(document.createElement("button"), { textContent: known[name].name, value: name });
      button.title = known[name].line.replace(/<[^>]*>/g, ""); // what the name means, before it is pressed
      button.addEventListener("click", () => chosen(name));
      $(id).append(button);
    }
  $("d_k").addEventListener("input", ({ target }) => choose({ stop: Number(target.value) }));
  $("steps").addEventListener("click", ({ target: { value } }) => value && keep(moved(...value.split(",").map(Number))));
  $("brightest").addEventListener("click", () => keep(brightest));
  for (const button of $("way").children) button.addEventListener("click", () => choose({ way: button.value }));
  for (const id of ["head-says", "slider-says"]) {
    $(id).addEventListener("pointerover", (event) => light(event.target.dataset.word ? Number(event.target.dataset.word) : null));
    $(id).addEventListener("pointerleave", () => light(null));
  }
  $("line").addEventListener("click", ({ target: { dataset } }) => {
    if (dataset.query) return choose({ query: Number(dataset.query), key: null, way: "head" });
    if (!dataset.head) return;
    const [layer, head, query, key] = dataset.head.split(",").map(Number);
    choose({ layer: layer - 1, head: head - 1, query, key, stop: STOPS.indexOf(TRAINED), way: "head" });
  });
  $("copy").addEventListener("click", async () => {
    const address = new URL(link(), location).href;
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
    // the answer, where the blank is on the page
    const { width, height } = svg.viewBox.baseVal, { bases, tall } = place, size = tall ? 16 : 20;
    const at = tall ? { x: bases[0] - 6, y: height + 16, "text-anchor": "end" } : { x: width, y: bases.at(-1) + 27 };
    const answer = element("text", { ...at, "font-size": size, "font-weight": 650, fill: getComputedStyle($("blank")).color }, copy);
    answer.textContent = $("blank").textContent;
    const [wide, high] = tall ? [width, height + 26] : [width + pen.measureText(answer.textContent).width * 1.2 + 12, height];
    for (const [name, x] of [["width", wide], ["height", high], ["viewBox", `0 0 ${wide} ${high}`], ["xmlns", XMLNS]]) copy.setAttribute(name, x);
    copy.setAttribute("style", `background:${style.backgroundColor};font-family:system-ui,sans-serif`);
    return new XMLSerializer().serializeToString(copy);
  }

  function save(href, file) {
    const anchor = Object.assign(document.createElement("a"), { href, download: file });
    anchor.click();
  }

  $("save-svg").addEventListener("click", () => save(`data:image/svg+xml,${encodeURIComponent(standalone())}`, `${item.id ?? "sentence"}.svg`));
  $("save-png").addEventListener("click", () => {
    const picture = new Image();
    picture.onload = () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 1200, height: 630 }), to = canvas.getContext("2d");
      const style = getComputedStyle(document.body), size = Math.min(1120 / picture.width, 400 / picture.height);
      const write = (text, y, size, bold = "") => {
        to.font = `${bold} ${size}px system-ui, sans-serif`; // smaller where it is too long
        to.font = `${bold} ${Math.min(1, 1120 / to.measureText(text).width) * size}px system-ui, sans-serif`;
        to.fillText(text, 40, y);
      };
      to.fillStyle = style.backgroundColor;
      to.fillRect(0, 0, 1200, 630);
      to.drawImage(picture, 600 - (picture.width * size) / 2, 565 - picture.height * size, picture.width * size, picture.height * size);
      to.fillStyle = style.color;
      write(document.querySelector("h1").textContent, 72, 44, "bold");
      const [[answer, p]] = said().next;
      write(`${item.ask ?? "What comes next?"} The model says “${answer.trim()}”, ${pct(p)}.`, 120, 28);
      write(`${$("head-says").textContent} ${mistaken() ? `Broken: ${mistakes[state.way].name}` : `d_k = ${STOPS[state.stop]}`}`, 605, 24);
      save(canvas.toDataURL("image/png"), `${item.id ?? "sentence"}.png`);
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

  function restored(asked) {
    // what a link says of the sentence that is shown, as far as it can be
    const within = (x, most) => Math.min(most, Math.max(0, Number(x) || 0));
    const stop = STOPS.indexOf(Number(asked.get("d"))), way = asked.get("w");
    const query = asked.has("q") ? within(asked.get("q"), last()) : last();
    const place = { layer: within(asked.get("l") - 1, LAYERS - 1), head: within(asked.get("h") - 1, HEADS - 1), query };
    const known = way in mistakes || way === "whole";
    return { ...place, ...(query < last() && { key: null }), ...(stop >= 0 && { stop }), ...(known && { way }) };
  }

  async function start() {
    const asked = new URLSearchParams(location.hash.slice(1)), known = catalogue.find(({ id }) => id === asked.get("s"));
    const text = asked.get("t")?.trimEnd();
    if (text && (writes || owns[text]?.reading === false)) {
      wanted = asked;
      $("typed").value = text;
      says(`This link holds a sentence of somebody's own. ${ready ? "The model reads it." : "Load the model: it reads it here, in this tab."}`);
      return read(text);
    }
    if (known && asked.get("l")) return show(known.id, () => restored(asked));
    await show(known?.id ?? catalogue[0].id);
    if (text) says("This link holds a sentence of its own, and this site has no model to read it.");
  }
  addEventListener("hashchange", () => location.hash !== link() && start());
  Object.assign(guesses, history.state?.guesses);
  start();

  // The notebooks' pictures come when they come into view.
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries)
      if (isIntersecting) {
        target.src = target.dataset.src;
        seen.unobserve(target);
      }
  });
  for (const picture of document.querySelectorAll("img[data-src]")) seen.observe(picture);
}
