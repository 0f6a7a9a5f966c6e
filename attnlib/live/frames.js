// The pictures of a view (frames.py) in a page without a kernel: each still that carries them becomes the picture with a
// slider. A page without scripts keeps the still. `window.attnlib` is kept once all of them stand in the page.
{
  const unpacked = (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  };

  const made = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  // A slider, and a row of options: (a control, what it does with a stop) -> [what stands in the page, what takes a stop,
  // what shows it].
  const slider = ({ name, labels, at }, moved) => {
    const rail = made("input", { type: "range", min: 0, max: labels.length - 1, value: at, ariaLabel: name });
    const readout = made("output", { textContent: labels[at] });
    readout.style.minWidth = `${Math.min(40, Math.max(...labels.map((label) => label.length)) + 1)}ch`;
    rail.ariaValueText = labels[at];
    const set = (stop) => {
      rail.value = stop;
      readout.textContent = rail.ariaValueText = labels[stop];
    };
    rail.addEventListener("input", () => moved(Number(rail.value)));
    return [made("label", { className: "attnlib-control" }, made("span", {}, name), rail, readout), moved, set];
  };
  let rows = 0;
  const options = ({ name, labels, at }, moved) => {
    rows += 1;
    const set = (stop) => (buttons[stop].checked = true);
    const buttons = labels.map((_, stop) => {
      const button = made("input", { type: "radio", name: `attnlib-options-${rows}`, checked: stop === at });
      button.addEventListener("input", () => moved(stop));
      return button;
    });
    const shown = buttons.map((button, stop) => made("label", {}, button, labels[stop]));
    const row = { className: "attnlib-control", role: "radiogroup", ariaLabel: name };
    return [made("div", row, made("span", {}, name), made("div", {}, ...shown)), moved, set];
  };

  const live = async (box) => {
    const { knobs, picture, changes, asks, fills, filled } = await unpacked(box.dataset.attnlib);
    const view = made("div", { className: "attnlib-live", innerHTML: picture });
    const elements = [view, ...view.querySelectorAll("*")];
    let shown = knobs.map(({ at }) => at);
    const show = (now) => {
      for (const [element, attribute, before, after, controls, which, values] of changes) {
        const value = (at) => {
          const k = controls.reduce((place, knob) => place * knobs[knob].labels.length + at[knob], 0);
          return values[which ? which.charCodeAt(k) - 48 : k];
        };
        const fresh = value(now);
        if (fresh === value(shown)) continue;
        const whole = fresh === null ? null : before + fresh + after;
        if (elements[element].classList.contains("attnlib-moves"))
          window.attnlibMotion.glide(elements[element], attribute, elements[element].getAttribute(attribute), whole);
        if (!attribute) elements[element][/[<&]/.test(whole) ? "innerHTML" : "textContent"] = whole;
        else if (whole === null) elements[element].removeAttribute(attribute);
        else elements[element].setAttribute(attribute, whole);
      }
      shown = now;
      tell();
      narrow();
    };
    // A picture that is a little wider than a phone shrinks, but for its letters.
    const narrow = () => {
      for (const svg of box.closest(".reveal") ? [] : view.querySelectorAll(":scope > svg[width], :scope > figure > svg[width]")) {
        const share = view.clientWidth / svg.getAttribute("width");
        if (!svg.style.width && (share < 0.8 || share >= 1)) continue;
        svg.attnlibBox ??= svg.getAttribute("viewBox");
        svg.style.width = share < 0.8 || share >= 1 ? "" : "100%";
        readable(svg, svg.attnlibBox);
      }
    };
    // What moves alone brings the others back to where they stood, and they bring it back.
    const moved = (k, stop) => {
      const { alone } = knobs[k];
      show(knobs.map(({ at, alone: other }, i) => (i === k ? stop : other === alone ? shown[i] : at)));
      parts.forEach(([, , set], i) => set(shown[i]));
    };
    const parts = knobs.map((knob, k) => (knob.choice ? options : slider)(knob, (stop) => moved(k, stop)));
    const controls = parts.map(([control]) => control);
    controls.forEach((control, k) => control.classList.toggle("attnlib-alone", Boolean(knobs[k].alone)));
    controls.forEach((control) => window.attnlibSets(control.firstChild));
    const one = knobs.find(({ alone }) => alone)?.name;
    if (one && !knobs[0].alone) {
      const says = `On this page, ${one} resets the controls above it, and they reset ${one}.`;
      controls.push(made("p", { className: "attnlib-told attnlib-alone", textContent: says }));
    }
    // A click on a cell, a word or a head takes the nearest stop of what it chooses.
    const chosen = (event) =>
      Object.entries(window.attnlibCells.under(view, event)?.chooses ?? {}).flatMap(([key, wanted]) => {
        const knob = knobs.findIndex((one) => one.key === key);
        if (knob < 0 || !controls[knob].isConnected) return []; // before an answer nothing moves
        const far = (knobs[knob].values ?? knobs[knob].labels.map((_, k) => k)).map((value) => Math.abs(value - wanted));
        return [[knob, far.indexOf(Math.min(...far))]];
      });
    view.addEventListener("click", (event) => chosen(event).forEach(([knob, stop]) => parts[knob][1](stop)));
    view.addEventListener("mousemove", (event) => (view.style.cursor = chosen(event).length ? "pointer" : ""));
    // A picture that is filled stage by stage: a button fills its own and all before it. A click on a number, which is a
    // group with a title, tells its arithmetic. Or a picture asks first, and a button is an answer.
    const told = made("p", { className: "attnlib-told", ariaLive: "polite" });
    let number = null;
    const tell = () => (told.textContent = number ? number.querySelector("title").textContent : "Click a number.");
    const buttons = (fills ?? []).map((words) => made("button", { type: "button", textContent: words }));
    const fill = (last) => {
      buttons.forEach((button, k) => button.setAttribute("aria-pressed", k < last));
      for (const part of view.querySelectorAll("[data-stage], [data-waits]"))
        if ("stage" in part.dataset ? part.dataset.stage <= last : part.dataset.waits > last) part.removeAttribute("visibility");
        else part.setAttribute("visibility", "hidden");
    };
    const row = made("div", { className: `attnlib-fills ${asks ? "attnlib-asks" : ""}` }, ...(asks ? [made("span", { textContent: asks })] : []), ...buttons);
    buttons.forEach((button, k) =>
      button.addEventListener("click", () => {
        if (!asks) return fill(k + 1);
        const answer = () => (fill(k + 1), row.replaceWith(...controls)); // the answer is there, and now what moves it
        window.attnlibMotion.unfold(box, answer);
        controls[0].querySelector("input").focus({ preventScroll: true });
        for (const part of view.querySelectorAll("[data-stage]")) window.attnlibMotion.appear(part);
      }),
    );
    if (fills) fill(filled);
    if (fills && !asks) {
      tell();
      view.addEventListener("click", ({ target }) => {
        number = target.closest("g:has(> title)");
        tell();
      });
    }
    const below = fills ? [row, view, told] : [view];
    box.replaceChildren(...(asks ? [row, view] : [...controls, ...below]));
    new ResizeObserver(narrow).observe(view);
    window.attnlibScrolls(view);
    if (!box.closest(".reveal")) window.attnlibGrows(box, () => view);
  };

  // Where a figure shrinks its letters keep 13 pixels. A line that is longer than the figure is broken, and the picture
  // takes in what its words then need around it.
  const plain = (svg, box) => {
    svg.setAttribute("viewBox", box);
    const words = [...svg.querySelectorAll("text")];
    for (const one of words) {
      one.attnlibSize ??= one.getAttribute("font-size") ?? 13;
      one.setAttribute("font-size", one.attnlibSize);
      if (one.attnlibLine) one.textContent = one.attnlibLine;
    }
    return words;
  };
  const readable = (svg, box) => {
    const words = plain(svg, box);
    const [left, top, wide, high] = box.split(" ").map(Number);
    for (let turn = 0; turn < 6; turn += 1) {
      const whole = svg.getBoundingClientRect(), { x, y, width } = svg.viewBox.baseVal, scale = whole.width / width;
      if (!scale) return;
      let edges = [left, top, left + wide, top + high];
      for (const one of words) {
        const size = Math.max(one.attnlibSize, 13 / scale);
        one.setAttribute("font-size", size);
        const room = width - 2, parts = one.textContent.split(" ");
        if (svg.closest(".attnlib-figure") && !one.querySelector("tspan") && one.getComputedTextLength() > room && parts.length > 1) broken(one, parts, room, size);
        const at = one.getBoundingClientRect();
        const [l, t] = [x + (at.left - whole.left) / scale, y + (at.top - whole.top) / scale];
        edges = [Math.min(edges[0], l), Math.min(edges[1], t), Math.max(edges[2], l + at.width / scale), Math.max(edges[3], t + at.height / scale)];
      }
      svg.setAttribute("viewBox", `${edges[0]} ${edges[1]} ${edges[2] - edges[0]} ${edges[3] - edges[1]}`);
    }
  };
  const broken = (text, words, room, size) => {
    text.attnlibLine = text.textContent;
    const lines = [words.shift()];
    for (const word of words) {
      text.textContent = `${lines.at(-1)} ${word}`;
      if (text.getComputedTextLength() > room) lines.push(word);
      else lines[lines.length - 1] = text.textContent;
    }
    const line = (words, k) => {
      const part = document.createElementNS(text.namespaceURI, "tspan");
      part.textContent = words;
      part.setAttribute("x", text.getAttribute("x"));
      part.setAttribute("dy", k ? 1.25 * size : -1.25 * size * (lines.length - 1));
      return part;
    };
    text.replaceChildren(...lines.map(line));
  };

  // Which words of a figure touch, and how each stands to its shapes: in, out or across, if all were larger by a factor.
  // Where raised letters do what those of the full size do not, the figure keeps a scale at which they do not, and
  // scrolls. Numbers that find no room in the small cells of a map are left out.
  const NATURAL = 100 / 72;
  const CELL = 30;
  const touching = (svg, by, margin) => {
    const box = (one) => {
      const { left, right, top, bottom } = one.getBoundingClientRect(), turned = one.matches("text") && Math.abs(one.getScreenCTM().b) > 0.01;
      const [x, y] = one.matches("text") ? [turned * 0.18 * (right - left), !turned * 0.18 * (bottom - top)] : [0, 0];
      return [left + x, top + y, right - x, bottom - y].map((edge) => by * edge);
    };
    const apart = (a, b, gap) => a[0] + 0.5 > b[2] + gap || b[0] + 0.5 > a[2] + gap || a[1] + 0.5 > b[3] || b[1] + 0.5 > a[3];
    const inside = (a, b) => a[0] > b[0] + margin && a[1] > b[1] && a[2] < b[2] - margin && a[3] < b[3];
    const slanted = (one) => Math.abs(one.getScreenCTM().a * one.getScreenCTM().b) > 0.01; // its box says little
    const words = [...svg.querySelectorAll("text")].filter((one) => one.getClientRects().length && one.textContent.trim()).map((one) => [one, box(one)]);
    const shapes = [...svg.querySelectorAll('path[d$="z" i], rect, image')].filter((one) => !one.closest("defs, clipPath")).map((one) => [one, box(one)]);
    const found = [];
    words.forEach(([one, a], i) => {
      for (const [other, b] of words.slice(i + 1)) if (!slanted(one) && !apart(a, b, number(one) && number(other) ? 3 : 0)) found.push([one, other, Math.hypot(a[0] + a[2] - b[0] - b[2], a[1] + a[3] - b[1] - b[3]) / 2, "touches"]);
      for (const [shape, b] of shapes) found.push([one, shape, Math.min(b[2] - b[0], b[3] - b[1]), inside(a, b) ? "in" : apart(a, b, 0) ? "out" : "across"]);
    });
    return found;
  };
  const number = (one) => !one.matches(".attnlib-word") && /^[-−]?[\d.]+$/.test(one.textContent);
  const fresh = (svg, known) => {
    svg.classList.remove("attnlib-bare");
    const was = new Map();
    for (const [one, other, , how] of known) was.set(one, (was.get(one) ?? new Map()).set(other, how));
    const now = touching(svg, 1, 1.5).filter(([one, other, , how]) => (how === "touches" || how === "across") && was.get(one)?.get(other) !== how && was.get(one)?.get(other) !== "across");
    const bare = now.every(([one]) => number(one)) && now.some(([, other, room]) => other.matches("text") && number(other) && room < CELL);
    svg.classList.toggle("attnlib-bare", bare);
    return !bare && now.length > 0;
  };

  // A column that stands below the others shows what names its rows, too: at its left, where they stand beside it.
  const namesRows = (figure) => {
    const shape = (column, box, shows) => {
      const more = box.split(" ")[2] / column.viewBox.baseVal.width;
      column.setAttribute("viewBox", box);
      for (const size of ["--wide", "--least"]) column.style.setProperty(size, more * column.style.getPropertyValue(size));
      for (const place of column.querySelectorAll("[data-of]"))
        place.replaceChildren(...(shows ? [figure.querySelector(`[data-names="${place.dataset.of}"]`).cloneNode(true)] : []));
      column.querySelectorAll("[data-of] :is(defs, use)").forEach((mark) => mark.remove());
    };
    const columns = [...figure.querySelectorAll(":scope > svg")].map((svg) => [svg, svg.getAttribute("viewBox")]);
    let room = 0;
    const lay = () => {
      if (room === (room = figure.clientWidth)) return;
      for (const [column, alone] of columns) shape(column, alone, false);
      for (const [column] of columns)
        if (column.dataset.rows && column.getBoundingClientRect().top > column.previousElementSibling.getBoundingClientRect().top + 1)
          shape(column, column.dataset.rows, true);
      const wide = [...figure.querySelectorAll(":scope > svg:not(i + svg)")].map((svg) => svg.style.getPropertyValue("--wide"));
      figure.style.setProperty("--most", Math.max(...wide));
      if (!room || figure.closest(".reveal")) return;
      const all = columns.map(([column]) => column), boxes = all.map((column) => column.getAttribute("viewBox"));
      all.forEach((column) => column.style.removeProperty("--at"));
      const share = (column, k) => column.getBoundingClientRect().width / boxes[k].split(" ")[2] / NATURAL;
      all.forEach((column, k) => plain(column, boxes[k]));
      const known = all.map((column, k) => touching(column, 1 / share(column, k), -0.5));
      for (let at = Math.min(...all.map(share)); ; at = Math.min(1, 1.1 * at)) {
        all.forEach((column, k) => readable(column, boxes[k]));
        const clash = all.map((column, k) => fresh(column, known[k]));
        if (at >= 1 || !clash.includes(true)) break;
        all.forEach((column, k) => column.style.setProperty("--at", `${Math.min(1, 1.1 * at) * NATURAL * boxes[k].split(" ")[2]}px`));
      }
    };
    figure.classList.toggle("attnlib-fits", !figure.closest(".reveal"));
    new ResizeObserver(lay).observe(figure);
    document.fonts.ready.then(() => ((room = 0), lay()));
  };

  for (const figure of document.querySelectorAll(".attnlib-figure")) {
    namesRows(figure);
    window.attnlibScrolls(figure);
  }
  window.attnlib = Promise.all([...document.querySelectorAll("[data-attnlib]")].map(live));
}
