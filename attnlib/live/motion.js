// How pictures move by themselves, and which cell of one is clicked: view.js uses it where a kernel draws them, frames.js
// where none runs.
{
  const styles = {
    d: (value) => `path("${value}")`,
    opacity: (value) => value,
    x: (value) => `${value}px`,
    y: (value) => `${value}px`,
    cx: (value) => `${value}px`,
    cy: (value) => `${value}px`,
    width: (value) => `${value}px`,
    height: (value) => `${value}px`,
  };
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // Lets an element go from the value that an attribute had to the one it has, or from where it is on its way there.
  const glide = (element, attribute, before, after) => {
    const style = styles[attribute];
    if (!style || !element.animate || before === after || before === null || after === null || calm()) return;
    const running = element.getAnimations().filter((animation) => animation.id === attribute);
    const from = running.length ? getComputedStyle(element)[attribute] : style(before);
    running.forEach((animation) => animation.cancel());
    const frames = { [attribute]: [from, style(after)] };
    element.animate(frames, { duration: 240, easing: "ease-in-out", id: attribute });
  };

  // Makes a picture that stands in the page like another one, element by element: what stays as it is is neither laid
  // out nor drawn again. What glides is not asked where it is on its way: each such question would lay the page out.
  const become = (old, fresh) => {
    if (fresh.dataset?.hole ? fresh.dataset.hole === old.dataset?.part : old.isEqualNode(fresh)) return;
    if (old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
    if (old.nodeType !== Node.ELEMENT_NODE) return void (old.data = fresh.data);
    const ways = {};
    for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const name of fresh.getAttributeNames()) {
      const [before, value] = [old.getAttribute(name), fresh.getAttribute(name)];
      if (before === value) continue;
      old.setAttribute(name, value);
      if (before !== null && styles[name]) ways[name] = [styles[name](before), styles[name](value)];
    }
    if (Object.keys(ways).length && fresh.classList.contains("attnlib-moves") && !calm())
      old.animate(ways, { duration: 160, easing: "ease-in-out" });
    for (let node = old.firstChild, wanted = fresh.firstChild; node || wanted; ) {
      const next = [node?.nextSibling, wanted?.nextSibling];
      if (node && wanted) become(node, wanted);
      else if (node) node.remove();
      else old.append(wanted);
      [node, wanted] = next;
    }
  };

  const appear = (element) => calm() || element.animate([{ opacity: 0 }, { opacity: 1 }], 600);

  // What unfolds pushes down what is below it, in the time of a change; its picture goes there from where it stood.
  const unfold = (box, change) => {
    const seen = () => [...box.querySelectorAll("svg")].find((svg) => svg.getClientRects().length) ?? box; // it may still wait
    const look = () => [box.clientHeight, seen().getBoundingClientRect().top];
    const [high, top] = look();
    change();
    const [now, at] = look(), way = { duration: 240, easing: "ease-out" };
    if (calm() || box.closest(".reveal")) return; // a slide has the room
    box.animate([{ height: `${high}px`, overflow: "clip" }, { height: `${now}px`, overflow: "clip" }], way);
    box.querySelector(".attnlib-live").animate([{ translate: `0 ${top - at}px` }, { translate: "0 0" }], way);
  };

  window.attnlibMotion = { glide, become, appear, unfold };

  // What is wider than its box can be scrolled with the keyboard, too: it takes the focus, and nothing else does. Where
  // it goes on, its edge fades; of a picture that a kernel draws again and again, that of the element around it.
  window.attnlibScrolls = (box, edge = box) => {
    const goesOn = () => {
      const hidden = getComputedStyle(box).overflowX !== "visible" ? box.scrollWidth - box.offsetWidth : 0;
      if (hidden > 0 && edge === box) box.setAttribute("tabindex", 0);
      else box.removeAttribute("tabindex");
      edge.classList.toggle("attnlib-goes-on", box.scrollLeft < hidden - 1);
    };
    new ResizeObserver(goesOn).observe(box);
    box.addEventListener("scroll", goesOn);
  };

  // Where there is room a picture grows: on a page to its column's edge, in a notebook by a step or two of the sizes of text.
  // It stays, with its controls, in the window. What grows by itself, and what is a table, stays.
  // In one room it never grows back: where it shrank because its parts took two lines, they would take one again.
  window.attnlibGrows = (box, picture) => {
    let room = "", tallest = Infinity;
    const grow = () => {
      const live = picture(), column = box.parentElement.clientWidth;
      if (!live || !column || live.querySelector('svg[style*="width:min("]')) return;
      const now = Number(box.style.getPropertyValue("--grown") || 1);
      const places = [...live.querySelectorAll("svg")].map((one) => one.getBoundingClientRect()).filter((one) => one.width);
      if (!places.length) return;
      const wide = (Math.max(...places.map((one) => one.right)) - Math.min(...places.map((one) => one.left))) / now;
      const high = live.getBoundingClientRect().height, beside = box.getBoundingClientRect().height - high;
      const page = box.matches(".attnlib-still") && !box.closest(".reveal"), steps = page ? [Math.min((column - 2) / wide, 1.34)] : [1.5625, 1.25];
      const fits = (by) => wide * by <= column && beside + (high / now) * by <= (page ? 0.95 : 0.78) * innerHeight;
      if (room !== (room = `${column} ${innerHeight}`)) tallest = Infinity;
      const most = (tallest = column < 720 ? 1 : (steps.find((by) => 1 < by && by < tallest + 0.01 && fits(by)) ?? 1));
      if (most !== now) box.style.setProperty("--grown", most);
    };
    new ResizeObserver(grow).observe(box.parentElement);
    addEventListener("resize", grow);
  };

  // A label that names d_k sets it as the text does. What a screen reader says is left to who knows the control.
  window.attnlibSets = (label) => {
    for (const words of [...label.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)) {
      const [before, ...after] = words.data.split("d_k");
      const set = () => ["i", "sub"].map((name, k) => Object.assign(document.createElement(name), { textContent: "dk"[k] }));
      if (after.length) words.replaceWith(before, ...after.flatMap((rest) => [...set(), rest]));
    }
  };

  // Where a reader can point or choose, as Python drew it: a grid of so many rows and columns. A picture with a layout for
  // narrow pages stands in the page twice, one of them hidden.
  const targets = (box) => [...box.querySelectorAll(".attnlib-target")].filter((target) => target.getClientRects().length);

  // The cell of a target at a point of the window, and what it chooses. Targets are only measured: tooltips below them
  // still work.
  const at = (target, [left, top]) => {
    const place = target.getBoundingClientRect();
    const is = target.dataset;
    const x = (left - place.left) / place.width;
    const y = (top - place.top) / place.height;
    const [i, j] = [Math.floor(y * is.rows), Math.floor(x * is.columns)];
    const chooses = { ...(is.row && { [is.row]: Number(is.first) + i }), ...(is.column && { [is.column]: j }) };
    return { i, j, target, chooses, inside: x >= 0 && x < 1 && y >= 0 && y < 1 };
  };
  const under = (box, event) =>
    targets(box)
      .map((target) => at(target, [event.clientX, event.clientY]))
      .find((cell) => cell.inside);

  window.attnlibCells = { targets, at, under };
}
