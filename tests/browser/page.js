// What the browser tests and the bench ask of a page; front_end.prepared puts it there before the page loads.
window.ask = {
  // The notebook in JupyterLab or Notebook 7, and its session.
  notebook: () =>
    [...(window.jupyterapp?.shell.widgets("main") ?? [])].find((widget) => widget.context?.sessionContext),
  session: () => window.ask.notebook()?.context.sessionContext.session,
  idle: () => document.querySelector(".jp-Notebook .jp-Cell") && window.ask.session()?.kernel?.status === "idle",
  codeCells: () =>
    window.ask
      .notebook()
      .content.model.sharedModel.toJSON()
      .cells.filter((cell) => cell.cell_type === "code")
      .map((cell) => [cell.execution_count, cell.outputs]),
  // Returns once the kernel has run the code.
  run: (code) => window.ask.session().kernel.requestExecute({ code }).done.then(() => 0),
  // Returns what the code prints.
  printed: async (code) => {
    const future = window.ask.session().kernel.requestExecute({ code });
    let text = "";
    future.onIOPub = (message) => (text += message.content.text ?? message.content.evalue ?? "");
    await future.done;
    return text;
  },

  idleClassic: () => {
    const notebook = window.Jupyter?.notebook;
    return notebook?.kernel?.is_connected() && notebook._fully_loaded && notebook.kernel.widget_manager;
  },
  doneClassic: () => {
    const ran = (cell) => cell.cell_type !== "code" || /^\d+$/.test(cell.input_prompt_number);
    const { notebook } = window.Jupyter;
    return !notebook.kernel_busy && (document.querySelector(".output_error") || notebook.get_cells().every(ran));
  },

  // Returns once all live views have kept their place and size for a while.
  settled: async () => {
    const look = () => JSON.stringify(window.ask.boxes(".attnlib-live"));
    for (let before = null, calm = 0; calm < 6; ) {
      await new Promise((later) => setTimeout(later, 50));
      const now = look();
      calm = now === before ? calm + 1 : 0;
      before = now;
    }
  },
  // The sizes that live views take, one after the other, in so many milliseconds.
  growth: async (time) => {
    const sizes = [];
    const watch = new MutationObserver((told) =>
      sizes.push(...told.map((one) => one.target.style.getPropertyValue("--grown"))));
    document.querySelectorAll(".attnlib-view").forEach((view) =>
      watch.observe(view, { attributes: true, attributeFilter: ["style"] }));
    await new Promise((later) => setTimeout(later, time));
    watch.disconnect();
    return sizes;
  },
  // The picture of the first view with a slider: a view above it may have buttons alone.
  picture: () =>
    [...document.querySelectorAll(".attnlib-view")]
      .find((view) => view.querySelector(".noUi-handle, .ui-slider-handle"))
      .querySelector(".attnlib-live").innerHTML,
  changed: (before) => window.ask.picture() !== before,
  useTheme: (theme) => window.jupyterapp.commands.execute("apputils:change-theme", { theme }),
  runAll: () => window.jupyterapp.commands.execute("notebook:run-all-cells"), // kept when the last cell has run
  // As Shift and Enter do in the first cell that shows a saved picture; ends at once.
  runThePicture: () => {
    const { content } = window.ask.notebook();
    content.activeCellIndex = content.widgets.findIndex((cell) => cell.node.querySelector(".jp-OutputArea-child img"));
    window.jupyterapp.commands.execute("notebook:run-cell");
  },
  // Ends when the notebook is saved, or when a dialog says that it cannot be.
  save: () => {
    const dialog = new Promise((found) => {
      const look = () => (document.querySelector(".jp-Dialog") ? found() : setTimeout(look, 50));
      look();
    });
    return Promise.race([window.jupyterapp.commands.execute("docmanager:save"), dialog]).then(() => 0);
  },
  // Whether each live view shows just this picture, see view.py.
  shows: (pictures) =>
    [...document.querySelectorAll(".attnlib-live")].map((view, i) => {
      const wanted = Object.assign(document.createElement("div"), { innerHTML: pictures[i] }).firstChild;
      return view.isEqualNode(wanted);
    }),
  // Opens the first output that has a view once more, beside the notebook.
  again: () => {
    const { content } = window.ask.notebook();
    content.activeCellIndex = content.widgets.findIndex((cell) => cell.node.querySelector(".attnlib-live"));
    return window.jupyterapp.commands.execute("notebook:create-output-view");
  },
  showsASavedPicture: () =>
    [...document.querySelectorAll(".jp-OutputArea img")].some((image) => image.naturalWidth > 100),
  allAlive: () => !document.querySelector("[data-attnlib]:not(:has(.attnlib-live))"),
  stills: () => document.querySelectorAll("[data-attnlib]").length,
  views: () => [...document.querySelectorAll(".attnlib-live")].map((view) => view.innerHTML),
  focusSlider: (i) => document.querySelectorAll("[data-attnlib]")[i].querySelector("input").focus(),
  unfold: () => document.querySelectorAll("article details").forEach((one) => (one.open = true)),
  // Presses every option of every question: {name of the question: {letter: what is replied}}. What a fold hides is open
  // while an option is chosen, and closed again by the last button.
  replies: () =>
    Object.fromEntries(
      [...document.querySelectorAll("div.attnlib-asked")].map((box) => {
        const fold = document.getElementById(box.dataset.opens);
        const press = (option) => {
          option.click();
          const chosen = [...box.querySelectorAll("[aria-checked=true]")];
          if (chosen.length !== 1 || chosen[0] !== option || (fold && !fold.open)) throw Error(box.dataset.name);
          return [option.value, box.querySelector(".attnlib-reply").textContent];
        };
        const told = Object.fromEntries([...box.querySelectorAll("[role=radio]")].map(press));
        box.querySelector(".attnlib-again").click();
        if (fold?.open || box.querySelector("[aria-checked=true]") || box.querySelector(".attnlib-reply").textContent)
          throw Error(box.dataset.name);
        return [box.dataset.name, told];
      }),
    ),
  // Types the numbers of each known answer, then others and none: {name of the exercise: [[numbers, what is replied]]}.
  verdicts: () =>
    Object.fromEntries(
      [...document.querySelectorAll("form.attnlib-asked")].map((form) => {
        const type = (known) => {
          form.querySelector("input").value = known;
          form.requestSubmit();
          return [known, form.querySelector(".attnlib-reply").textContent];
        };
        const known = [...form.querySelectorAll("template")].slice(0, -2).map((reply) => reply.dataset.of);
        return [form.dataset.name, [...known, "-7, 77", "no idea"].map(type)];
      }),
    ),
  answer: () => document.querySelectorAll(".attnlib-asked [role=radio]:first-child").forEach((option) => option.click()),
  fades: () =>
    [...document.querySelectorAll("details.hide > :not(summary)")].some((node) => getComputedStyle(node).animationName !== "none"),
  // The colour of words in a figure, that of the page, and the halo.
  ink: (words) => [getComputedStyle(words).fill, getComputedStyle(words.ownerSVGElement).color, getComputedStyle(words).stroke],
  // What is painted: stripes are lines, all else has a ground.
  painted: (parts) =>
    parts.map((part) => {
      const { fill, stroke } = getComputedStyle(part);
      return (part.matches("[stroke], [style*='fill:none']") ? stroke : fill).match(/[\d.]+/g).slice(0, 3).join();
    }),
  // A tinted number and its ground, which lets that of the page through.
  tints: (cells) =>
    cells.map((cell) => {
      const colour = (one) => getComputedStyle(one).backgroundColor.match(/[\d.]+/g).map(Number);
      const [page, [r, g, b, share = 1]] = [colour(document.body), colour(cell)];
      return [+cell.textContent, ...[r, g, b].map((x, i) => share * x + (1 - share) * page[i])];
    }),
  places: (box) => [...box.querySelectorAll(":scope > svg")].map((svg) => svg.getBoundingClientRect().toJSON()),
  // The scale of each column of a figure that has a line for itself.
  alone: (box) => {
    const columns = [...box.querySelectorAll(":scope > svg:not(i + svg)")].map((svg) => [svg, svg.getBoundingClientRect()]);
    const begins = columns.map(([, place]) => Math.round(place.top));
    return columns.filter((_, k) => begins.filter((top) => top === begins[k]).length === 1).map(([svg, place]) => place.width / svg.viewBox.baseVal.width);
  },
  // Words of a figure that cover one another, and those that leave the small box they stand in. A box around slanted words
  // says little; above and below a letter its box has air. A formula is wider than matplotlib knows.
  collisions: () =>
    [...document.querySelectorAll(".attnlib-figure > svg")].flatMap((svg) => {
      const shown = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim() && getComputedStyle(text).visibility === "visible" && text.getClientRects().length);
      const words = shown.flatMap((text) => {
        const { a, b } = text.getScreenCTM(), { left, right, top, bottom } = text.getBoundingClientRect();
        if (Math.abs(a * b) > 0.01) return [];
        const [x, y] = Math.abs(b) > 0.01 ? [0.2 * (right - left), 0] : [0, 0.2 * (bottom - top)];
        return [{ text: text.textContent, left: left + x, right: right - x, top: top + y, bottom: bottom - y }];
      });
      const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
      const boxes = [...svg.querySelectorAll("path[d$=z]")].map((path) => [getComputedStyle(path), path.getBoundingClientRect()]).filter(([{ stroke }, { height }]) => stroke !== "none" && height < 60);
      const holds = ({ left, right, top, bottom }, box) => left + right > 2 * box.left && left + right < 2 * box.right && top + bottom > 2 * box.top && top + bottom < 2 * box.bottom;
      const pairs = words.flatMap((one, i) => words.slice(i + 1).filter((other) => meet(one, other)).map((other) => `${one.text} × ${other.text}`));
      const left = words.filter((one) => !one.text.includes("\u200b") && boxes.some(([, box]) => holds(one, box) && (one.left < box.left - 0.5 || one.right > box.right + 0.5)));
      return [...pairs, ...left.map(({ text }) => `${text} leaves its box`)];
    }),
  // Whether all columns of a figure have room beside each other, with letters that can be read.
  hasRoom: (box) =>
    [...box.querySelectorAll(":scope > svg")].reduce((sum, svg) => sum + +svg.style.getPropertyValue("--least"), 0) <= box.clientWidth,
  // Of each column that leaves the names of its rows to the one beside it: whether it begins a line, and shows them.
  namesOfRows: () =>
    [...document.querySelectorAll(".attnlib-figure > [data-rows]")].map((column) => {
      const [box, before] = [column, column.previousElementSibling].map((one) => one.getBoundingClientRect());
      const names = [...column.querySelectorAll("[data-of] text")].map((name) => name.getBoundingClientRect());
      return [box.top > before.top + 1, names.length > 1 && names.every((name) => name.left > box.left - 1)];
    }),
  cutReadouts: () =>
    [...document.querySelectorAll(".attnlib-readout")].filter((line) => line.scrollHeight > line.clientHeight + 1).length,
  // Sliders whose readout is cut, or that have no room to be moved.
  crampedSliders: () => {
    const shown = [...document.querySelectorAll(".attnlib-view .widget-hslider")].filter((slider) => slider.getClientRects().length);
    const cramped = shown.filter((slider) => {
      const readout = slider.querySelector(".widget-readout");
      return readout.scrollWidth > readout.clientWidth || slider.querySelector(".noUi-target").clientWidth < 100;
    });
    return cramped.map((slider) => slider.textContent);
  },
  // Where the controls of each view end, and its picture.
  columns: () =>
    [...document.querySelectorAll(".attnlib-view")].map((view) => {
      const ends = (selector) => Math.max(...[...view.querySelectorAll(selector)].map((one) => one.getBoundingClientRect().right));
      return { controls: ends(".widget-hslider, .widget-slider"), picture: ends(".attnlib-live > *") };
    }),
  // What a figure takes from elsewhere on the page: a hatching, a tick. Where that is hidden, nothing would be drawn.
  borrowed: () =>
    [...document.querySelectorAll("svg *")].flatMap((part) => {
      const kept = ["fill", "clip-path", "style"].map((name) => part.getAttribute(name)).join();
      const sought = [...kept.matchAll(/url\("?#([^)"]+)/g)].map(([, id]) => id).concat(part.getAttribute("href")?.match(/(?<=^#).+/) ?? []);
      return sought.filter((id) => document.getElementById(id)?.closest(".attnlib-figure") !== part.closest(".attnlib-figure"));
    }),
  disconnect: (view) => view.classList.add("jupyter-widgets-disconnected"),
  fitsItsOutput: (view) => {
    const output = view.closest(".jp-OutputArea-output");
    return output.scrollWidth <= output.clientWidth;
  },
  isInView: (node) => node.getBoundingClientRect().y >= 0 && node.getBoundingClientRect().y < innerHeight,
  masked: (box) => getComputedStyle(box).maskImage,
  toItsEnd: (box) => (box.scrollLeft = box.scrollWidth),
  fitsAcross: () => document.documentElement.scrollWidth <= innerWidth,
  formulasAreDrawn: () => [...document.querySelectorAll("article math")].every((math) => math.getBoundingClientRect().width > 3),
  imagesAreShown: () => [...document.images].every((image) => image.naturalWidth > 50 && image.alt.length > 20),
  prose: () =>
    [...document.querySelectorAll("article")]
      .map((cell) => {
        const copy = cell.cloneNode(true);
        copy.querySelectorAll("code, pre, svg:has(.attnlib-written)").forEach((given) => given.remove());
        return copy.textContent;
      })
      .join(""),

  // The colour of a live view's text and that of the ground it stands on.
  colours: () => {
    const live = document.querySelector(".attnlib-live");
    const clear = (node) => /rgba\(.*, 0\)|transparent/.test(getComputedStyle(node).backgroundColor);
    let ground = live;
    while (ground && clear(ground)) ground = ground.parentElement;
    return [getComputedStyle(live.querySelector("svg text")).fill, getComputedStyle(ground).backgroundColor];
  },
  // The steps of the first control at which the first view is not the picture of that stop, element by element.
  wrongSteps: ([pictures, steps]) => {
    const drawn = document.createElement("div");
    const [slider, ...options] = document.querySelector(".attnlib-control").querySelectorAll("input");
    return steps.filter((step) => {
      if (options.length) [slider, ...options][step].click();
      else slider.value = step;
      if (!options.length) slider.dispatchEvent(new Event("input"));
      drawn.innerHTML = pictures[step];
      const shown = document.createElement("div"); // the order of attributes, which `innerHTML` would compare, says nothing
      shown.append(...document.querySelector(".attnlib-live").cloneNode(true).childNodes);
      return !shown.isEqualNode(drawn);
    });
  },
  written: (picture) => Object.assign(document.createElement("div"), { innerHTML: picture }).innerHTML,
  gliding: () => document.getAnimations().length,
  textSizes: () =>
    [...document.querySelectorAll(".attnlib-live svg")].flatMap((svg) => {
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      const texts = [...svg.querySelectorAll("text")].filter((text) => text.getClientRects().length);
      return texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale);
    }),
  // What is smaller than 11 pixels on this page: its texts, but for indices, and pictures that shrink below 0.92.
  tooSmall: () => {
    const page = document.querySelector("article") ?? document.body;
    const walker = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      const words = walker.currentNode.textContent.trim();
      if (!words || parent.closest("title, desc, style, script, sub, sup, math, tspan[dy]")) continue;
      if (!parent.getClientRects().length) continue;
      const turned = parent.closest("text")?.getScreenCTM();
      const scale = turned ? Math.hypot(turned.a, turned.b) : parent.currentCSSZoom;
      const size = parseFloat(getComputedStyle(parent).fontSize) * scale;
      if (size < 11) found.push([Math.round(10 * size) / 10, words]);
    }
    for (const image of page.querySelectorAll("img"))
      if (image.getClientRects().length && image.clientWidth < 0.92 * image.naturalWidth)
        found.push([image.clientWidth / image.naturalWidth, image.alt]);
    return found;
  },
  // The sizes of words on a page, but for those of pictures, formulas, indices, and of verdicts, which notebooks bring.
  sizes: () => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = {};
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement, words = walker.currentNode.textContent.trim();
      if (!words || parent.closest("svg, math, sub, sup, script, style, template, .attnlib-still, .attnlib-figure, .attnlib-reply")) continue;
      if (parent.getClientRects().length) found[getComputedStyle(parent).fontSize] ??= words;
    }
    return found;
  },
  // Views that are no column of one width: rails that differ, or controls that begin or end elsewhere than the picture.
  loose: () =>
    [...document.querySelectorAll("[data-attnlib]:has(.attnlib-control)")].filter((view) => {
      const ends = (which) =>
        new Set([...view.querySelectorAll(which)].map((one) => one.getBoundingClientRect()).map((box) => `${box.left} ${box.right}`));
      return ends(".attnlib-control > input").size > 1 || ends(":scope > .attnlib-control, :scope > .attnlib-live").size > 1;
    }),
  seen: (view) =>
    [...view.querySelectorAll("text")].filter((text) => text.getClientRects().length).map((text) => text.textContent),
  says: (selector) => document.querySelector(selector).textContent,
  box: (node) => node.getBoundingClientRect().toJSON(),
  boxes: (selector) => [...document.querySelectorAll(selector)].map((node) => node.getBoundingClientRect()),
  tops: (selector) => window.ask.boxes(selector).map((box) => box.top),
  restart: () => window.ask.session().kernel.restart(),

  // Pictures and code that are wider than their frame; letters of pictures that are smaller than 13 pixels.
  cut: () => {
    const boxes = document.querySelectorAll(".attnlib-live, .attnlib-figure, .code, .printed:not(table, .aligned), main table:not(:has(th:nth-child(8)))");
    const wide = [...boxes].filter((box) => box.scrollWidth > box.clientWidth + 1);
    const names = [...document.querySelectorAll("main td:first-child:not([data-of])")].filter((cell) => {
      const words = cell.textContent.trim().split(/\s+/).length, line = parseFloat(getComputedStyle(cell).lineHeight);
      return words > 3 && (cell.clientHeight - 4) / line >= words - 0.5; // a word a line
    });
    const indices = [...document.querySelectorAll(".attnlib-figure tspan[style*=size]")].filter((one) => {
      const { a, b } = one.ownerSVGElement.getScreenCTM();
      return one.getClientRects().length && innerWidth < 560 && parseFloat(getComputedStyle(one).fontSize) * Math.hypot(a, b) < 11.9;
    });
    const words = [...document.querySelectorAll("main svg text")].filter((one) => one.getClientRects().length);
    const small = words.filter((one) => {
      const { a, b } = one.getScreenCTM();
      return parseFloat(getComputedStyle(one).fontSize) * Math.hypot(a, b) < 12.9;
    });
    return [...wide.map((box) => [box.className, box.scrollWidth, box.textContent.slice(0, 40)]), ...[...small, ...names, ...indices].map((one) => one.textContent)];
  },
  // Numbers in the cells of maps whose contrast is below 4.5; and the colours of the cells and bars of weights.
  dim: () => {
    const rgb = (one) => getComputedStyle(one).fill.match(/[\d.]+/g).map(Number);
    const light = (colour) => {
      const [r, g, b] = colour.map((x) => x / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    return [...document.querySelectorAll(".attnlib-live g[pointer-events=none][text-anchor=middle]")].flatMap((numbers) => {
      const [ground, ...cells] = numbers.parentElement.querySelectorAll("g[shape-rendering] > rect");
      const boxes = cells.map((cell) => [cell, cell.getBoundingClientRect()]);
      return [...numbers.querySelectorAll("text")].filter((text) => {
        const { left, right, top, bottom } = text.getBoundingClientRect(), [x, y] = [(left + right) / 2, (top + bottom) / 2];
        const cell = boxes.find(([, box]) => box.left <= x && x < box.right && box.top <= y && y < box.bottom)?.[0];
        if (!cell) return false;
        const share = +getComputedStyle(cell).opacity, over = rgb(cell);
        const pair = [light(rgb(text)), light(rgb(ground).map((g, i) => share * over[i] + (1 - share) * g))];
        return Math.max(...pair) / Math.min(...pair) < 4.45; // opacities have two decimals
      });
    }).map((text) => text.textContent);
  },
  // Words of pictures that stand out less than 3 from what is painted below their middle; not those on images.
  unlit: () => {
    const light = (colour) => {
      const [r, g, b] = colour.map((x) => x / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const rgba = (colour) => [...colour.match(/[\d.]+/g).map(Number), 1].slice(0, 4);
    const over = (ground, colour, share) => ground.map((g, i) => share * colour[3] * colour[i] + (1 - share * colour[3]) * g);
    return [...document.querySelectorAll("main svg")].flatMap((svg) => {
      let holder = svg;
      while (holder.parentElement && !rgba(getComputedStyle(holder).backgroundColor)[3]) holder = holder.parentElement;
      const page = rgba(getComputedStyle(holder).backgroundColor).slice(0, 3);
      const shapes = [...svg.querySelectorAll("rect, path, circle, ellipse, polygon, image")]
        .filter((one) => one.getClientRects().length && !one.closest("defs, clipPath, pattern, mask") && getComputedStyle(one).visibility == "visible")
        .map((one) => [one, one.getBoundingClientRect(), getComputedStyle(one)])
        .filter(([one, , { fill }]) => one.matches("image") || fill.startsWith("rgb"));
      return [...svg.querySelectorAll("text")].filter((text) => {
        const { fill, visibility } = getComputedStyle(text), { left, right, top, bottom } = text.getBoundingClientRect();
        if (right == left || visibility != "visible" || !text.textContent.trim() || !fill.startsWith("rgb")) return false;
        const middle = new DOMPoint((left + right) / 2, (top + bottom) / 2);
        let ground = page;
        for (const [one, box, style] of shapes) {
          if (!(text.compareDocumentPosition(one) & 2) || box.left > middle.x || middle.x > box.right || box.top > middle.y || middle.y > box.bottom) continue;
          if (one.matches("image")) return false;
          if (!one.isPointInFill(middle.matrixTransform(one.getScreenCTM().inverse()))) continue;
          let share = +style.fillOpacity;
          for (let up = one; up != svg; up = up.parentElement) share *= getComputedStyle(up).opacity;
          ground = over(ground, rgba(style.fill), share);
        }
        const pair = [light(rgba(fill)), light(ground)];
        return Math.max(...pair) / Math.min(...pair) < 3;
      }).map((text) => text.textContent);
    });
  },
  oranges: () => [".attnlib-live g[shape-rendering]:has(> rect > title)", ".attnlib-live rect[fill='#D55E00']"].map((which) =>
    [...new Set([...document.querySelectorAll(which)].map((one) => getComputedStyle(one).fill))]),
  // Rows of printed columns that take two lines.
  wrapped: () =>
    [...document.querySelectorAll(".printed.aligned span")].filter((row) => row.getClientRects().length && row.clientHeight > 1.5 * parseFloat(getComputedStyle(row).lineHeight)).map((row) => row.textContent),
  // Where the first picture of a page ends or, a tall one, is half seen.
  first: () => {
    const { top, height } = document.querySelector(".lead svg, .attnlib-live svg, .attnlib-figure > svg, main img").getBoundingClientRect();
    return scrollY + top + Math.min(height, 200);
  },
  // Folds that stand below each other with nothing between them.
  foldsInARow: () => document.querySelectorAll("main .fold + .fold").length,
  // Where the sliders of a view are while the last of its picture is seen.
  moveTo: (slider, stop) => {
    slider.value = stop;
    slider.dispatchEvent(new Event("input"));
  },
  slidersAtItsEnd: (still) => {
    scrollTo(0, scrollY + still.getBoundingClientRect().bottom - innerHeight);
    return [...still.querySelectorAll(":scope > label")].map((one) => Math.round(one.getBoundingClientRect().top));
  },
  // Texts that leave the picture of their view; numbers wider than their cell, or that touch the one before.
  clipped: () =>
    [...document.querySelectorAll(".attnlib-live svg")].flatMap((svg) => {
      const a = svg.getBoundingClientRect();
      // A box is higher than its letters, and views grow by a quarter.
      const leaves = (b) => b.left < a.left - 1 || b.right > a.right + 1 || b.top < a.top - 2.5 || b.bottom > a.bottom + 2.5;
      const drawn = [...svg.querySelectorAll("text")].filter((text) => text.getClientRects().length);
      const texts = drawn.filter((text) => leaves(text.getBoundingClientRect()));
      return texts.map((text) => text.textContent);
    }),
  crowded: () =>
    [...document.querySelectorAll(".attnlib-live g[pointer-events=none][text-anchor=middle]")].flatMap((numbers) => {
      const cell = numbers.parentElement.querySelector("rect").getBoundingClientRect();
      if (!cell.width) return []; // the frame for a phone, which is not shown here
      const texts = [...numbers.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
      const touches = ([words, box], k) => {
        const before = texts[k - 1]?.[1];
        return before && before.top === box.top && box.left - before.right < (words.startsWith("-") ? 1 : 2);
      };
      return texts.filter((text, k) => text[1].width > cell.width || touches(text, k)).map(([words]) => words);
    }),

  // On each slide: what leaves it by more than a pixel, what scrolls, what is too small to read from the last row (a view
  // is drawn larger as a whole), and pictures that have become small without having the slide to themselves.
  slides: () => {
    const faults = [];
    const smallest = { prose: 99, code: 99 };
    const { Reveal } = window;
    const slides = Reveal.getSlides();
    for (const slide of slides) {
      Reveal.slide(Reveal.getIndices(slide).h);
      const at = `slide ${Reveal.getSlidePastCount() + 1} (${slide.querySelector("h1, h2, h3")?.textContent}): `;
      const frame = slide.getBoundingClientRect();
      if (frame.width !== 1024 || frame.height !== 768) faults.push(`${at}is ${frame.width} x ${frame.height}`);
      if (!slide.children.length) faults.push(`${at}is empty`);
      for (const still of slide.querySelectorAll("[data-attnlib]"))
        for (const beside of still.style.zoom <= 1 ? still.parentElement.children : [])
          if (beside !== still && !beside.matches("h1, h2, h3, .live")) faults.push(`${at}a small picture beside text`);
      for (const element of slide.querySelectorAll("*:not(aside, aside *)")) {
        const box = element.getBoundingClientRect();
        const name = `${element.tagName}: ${element.textContent.slice(0, 60)}`;
        if (box.left < -1 || box.top < -1 || box.right > 1025 || box.bottom > 769) faults.push(`${at}leaves it: ${name}`);
        if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth && !element.closest("math, svg"))
          faults.push(`${at}scrolls: ${name}`);
        const size = parseFloat(getComputedStyle(element).fontSize);
        if (element.closest("pre")) smallest.code = Math.min(smallest.code, size);
        else if (element.matches("p, li") && !element.closest("[data-attnlib]")) smallest.prose = Math.min(smallest.prose, size);
      }
      const walker = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
      const range = document.createRange();
      while (walker.nextNode()) {
        range.selectNodeContents(walker.currentNode);
        for (const box of range.getClientRects())
          if (box.right > 1025 || box.bottom > 769)
            faults.push(`${at}text leaves it: ${walker.currentNode.textContent}`);
      }
    }
    return { faults, smallest, count: slides.length, text: document.querySelector(".slides").textContent };
  },

  // Of a lecture: what leaves its slide, slides without notes, the smallest letters that are no index.
  lecture: () => {
    const faults = [];
    let smallest = { size: 99 };
    let drawn = 99;
    const { Reveal } = window;
    const range = document.createRange();
    for (const slide of Reveal.getSlides()) {
      Reveal.slide(Reveal.getIndices(slide).h, 0, 9); // with all its fragments
      const at = `slide ${Reveal.getSlidePastCount() + 1} (${slide.querySelector("footer").textContent}): `;
      if (slide.querySelector("aside.notes").textContent.trim().length < 20) faults.push(`${at}has no notes`);
      const frame = slide.getBoundingClientRect();
      if (Math.abs(frame.width - innerWidth) > 2 || Math.abs(frame.height - innerHeight) > 2)
        faults.push(`${at}is ${frame.width} x ${frame.height}`);
      const walker = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const parent = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || parent.closest("aside, title, desc")) continue;
        range.selectNodeContents(walker.currentNode);
        for (const box of range.getClientRects())
          if (box.left < -1 || box.top < -1 || box.right > innerWidth + 1 || box.bottom > innerHeight + 1)
            faults.push(`${at}text leaves it: ${walker.currentNode.textContent}`);
        if (parent.closest("sub, sup, tspan, math") || !parent.getClientRects().length) continue;
        if (parent.closest(".attnlib-figure")) continue; // the letters of a figure are measured below
        const svg = parent.closest("svg");
        const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : Reveal.getScale() * parent.currentCSSZoom;
        const size = parseFloat(getComputedStyle(parent).fontSize) * scale;
        if (svg) drawn = Math.min(drawn, size);
        else if (size < smallest.size) smallest = { size, at, text: walker.currentNode.textContent };
      }
      faults.push(...window.ask.crammed(slide).map((fault) => at + fault));
      const inner = slide.querySelector(".slide"), beside = parseFloat(getComputedStyle(inner).paddingRight) * Reveal.getScale();
      for (const part of slide.querySelectorAll(".picture > :is(table, .code, .to-fill), .body > :is(.says, .question)"))
        if (part.getBoundingClientRect().right > inner.getBoundingClientRect().right - beside + 2)
          faults.push(`${at}passes the right margin: ${part.textContent.trim().slice(0, 40)}`);
      for (const picture of slide.querySelectorAll(".body img, .body svg")) {
        const box = picture.getBoundingClientRect();
        if (box.left < -1 || box.top < -1 || box.right > innerWidth + 1 || box.bottom > innerHeight + 1)
          faults.push(`${at}a picture leaves it`);
        // A figure of a notebook has letters of 10 points: 10 units of an SVG, 13.9 pixels of a PNG.
        const units = picture.closest(".attnlib-figure") && picture.viewBox.baseVal.width / 10;
        const letters = picture.naturalWidth ? (13.9 * box.width) / picture.naturalWidth : units ? box.width / units : 18;
        if (letters < 18) faults.push(`${at}the letters of its figure are ${letters} pixels high`);
      }
    }
    return { faults, smallest, drawn, count: Reveal.getTotalSlides() };
  },
  // Of a lecture: an answer in bold that waits, and stands on its slide or on the one before.
  told: () => {
    const seen = (slide) => {
      const copy = slide.querySelector(".slide").cloneNode(true);
      for (const part of copy.querySelectorAll(".fragment, style, title, desc, annotation")) part.remove();
      return copy.textContent.replace(/\s+/g, " ");
    };
    return Reveal.getSlides().flatMap((slide, i, all) => {
      const bold = [...slide.querySelectorAll(".slide .fragment strong")].map((one) => one.textContent.trim());
      const before = i ? all[i - 1].querySelector(".slide").textContent.replace(/\s+/g, " ") : "";
      const known = seen(slide) + (all[i - 1]?.dataset.kind === "exercise" ? "" : before);
      const told = bold.filter((one) => /\d\D+\d/.test(one) && known.includes(one));
      return told.map((one) => `slide ${i + 1}: ${one}`);
    });
  },
  toItsStart: (still) => {
    for (const slider of still.querySelectorAll("input[type=range]")) {
      slider.value = slider.min;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    }
  },
  // Words that leave their plate, numbers of neighbouring cells that touch, and letters of a figure that are alike in the
  // notebook and differ here.
  crammed: (slide) => {
    const shown = (text) => text.getClientRects().length && text.textContent.trim();
    const texts = [...slide.querySelectorAll(".picture svg text")].filter(shown);
    const box = new Map(texts.map((text) => [text, text.getBoundingClientRect()]));
    const plate = ({ previousElementSibling: shape }) => shape?.matches('path[d*=Q], g > rect[rx="3"]:first-child') && shape;
    const leaves = (a, b) => a.left < b.left || a.right > b.right || a.bottom > b.bottom + 2 || a.top < b.top - 2;
    const number = (text) => /^-?[\d.]+$/.test(text.textContent) && getComputedStyle(text).textAnchor === "middle";
    const touch = (a, b) => a.top === b.top && a.left < b.left && b.left - a.right < 2;
    const kind = (text) => [...["font-size", "text-anchor", "class"].map((name) => text.getAttribute(name)), !!plate(text)].join();
    const figures = [...slide.querySelectorAll(".attnlib-figure")].flatMap((figure) => {
      const alike = Object.values(Object.groupBy(texts.filter((text) => figure.contains(text)), kind));
      return alike.filter((some) => new Set(some.map((text) => getComputedStyle(text).fontSize)).size > 1);
    });
    const left = texts.filter((text) => plate(text) && leaves(box.get(text), plate(text).getBoundingClientRect()));
    const numbers = texts.filter(number);
    const touching = numbers.filter((text) => numbers.some((other) => touch(box.get(text), box.get(other))));
    return [
      ...left.map((text) => `words leave their plate: ${text.textContent}`),
      ...touching.map((text) => `a number touches the next: ${text.textContent}`),
      ...figures.map((some) => `letters in two sizes: ${some.map((text) => text.textContent)}`),
    ];
  },
  // The smallest letter in the pictures of a lecture, in pixels, with its words and its slide: the height of an x, or of a
  // digit where a text has no small letter.
  letters: () => {
    const canvas = document.createElement("canvas").getContext("2d");
    const texts = window.Reveal.getSlides().flatMap((slide) => {
      window.Reveal.slide(window.Reveal.getIndices(slide).h, 0, 9);
      const shown = [...slide.querySelectorAll(".picture svg text")].filter((text) => text.getClientRects().length);
      return shown.map((text) => {
        const { fontFamily, fontSize } = getComputedStyle(text), { a, b } = text.getScreenCTM();
        canvas.font = `100px ${fontFamily}`;
        const tall = (canvas.measureText(/[a-z]/.test(text.textContent) ? "x" : "0").actualBoundingBoxAscent / 100) * parseFloat(fontSize) * Math.hypot(a, b);
        return [tall, text.textContent, slide.querySelector("footer").textContent];
      });
    });
    return texts.filter((text) => text[1].trim()).reduce((least, text) => (text[0] < least[0] ? text : least));
  },
  // From now on `animations` has the frames of all that glides.
  keepAnimations: () => {
    window.ask.animations = [];
    const { animate } = Element.prototype;
    Element.prototype.animate = function (frames, ...rest) {
      window.ask.animations.push(JSON.stringify(frames));
      return animate.call(this, frames, ...rest);
    };
  },
  // The sizes of letters of each vote beside a table: its options, its question, and the table.
  votes: () =>
    [...document.querySelectorAll("section:has(.vote):has(.picture > table)")].map((one) =>
      [".vote", ".question", ".picture"].map((at) => {
        const style = getComputedStyle(one.querySelector(at));
        return parseFloat(style.fontSize) * (at === ".picture" ? style.zoom : 1);
      }),
    ),
  // What is wrong on paper: a table's word is torn, something is wider than the sheet, a picture is a stamp, lines are lone.
  onPaper: () => {
    const torn = [...document.querySelectorAll("main table")].flatMap((table) => {
      const walker = document.createTreeWalker(table, NodeFilter.SHOW_TEXT), range = document.createRange(), found = [];
      while (walker.nextNode())
        for (const { 0: word, index } of walker.currentNode.data.matchAll(/[\w.]+/g)) {
          range.setStart(walker.currentNode, index);
          range.setEnd(walker.currentNode, index + word.length);
          if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) found.push(["torn", word]);
        }
      return found;
    });
    const seen = [...document.querySelectorAll("main :is(table, .code, .printed, .card, .attnlib-live svg, .attnlib-figure > svg)")].filter((one) => one.getClientRects().length);
    const right = document.querySelector("main").getBoundingClientRect().right;
    const wide = seen.filter((one) => one.getBoundingClientRect().right > right + 55 || (!one.matches("svg") && one.scrollWidth > one.clientWidth + 1));
    const small = seen.filter((one) => one.matches("svg") && one.getBoundingClientRect().height > 1).filter((one) => one.getScreenCTM().a < 0.6);
    const lone = seen.filter((one) => one.matches(".code, .printed") && +getComputedStyle(one).orphans < 3);
    return [...torn, ...[["wide", wide], ["small", small], ["lone", lone]].flatMap(([why, all]) => all.map((one) => [why, one.textContent.slice(0, 40)]))];
  },
  // The white at the foot of each sheet of paper, as the page lays them out before it is printed.
  feet: ([, width, height]) => {
    const main = document.querySelector("main"), high = height - MARGINS, back = asOnPaper(width, height);
    layColumns(main, high);
    const feet = sheetsOf(main).map(({ foot }) => 1 - foot / high);
    main.style.cssText = "";
    back();
    return feet;
  },
  pages: () => document.querySelectorAll(".pdf-page").length,
  cutInPrint: () =>
    [...document.querySelectorAll(".pdf-page .body")].filter(
      (body) => body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1,
    ).length,
};
