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
  const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

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

  // The same for a picture that has taken another's place, element by element. What is new has no animation yet, and is
  // not asked for one: each such question would lay the whole page out again.
  const glideAll = (before, after) => {
    const [old, fresh] = [before, after].map((picture) => [...picture.querySelectorAll(".attnlib-moves")]);
    if (old.length !== fresh.length || calm()) return;
    fresh.forEach((element, k) => {
      const changed = Object.entries(styles).flatMap(([attribute, style]) => {
        const ends = [old[k], element].map((one) => one.getAttribute(attribute));
        return ends[0] === ends[1] || ends.includes(null) ? [] : [[attribute, ends.map(style)]];
      });
      if (changed.length) element.animate(Object.fromEntries(changed), { duration: 160, easing: "ease-in-out" });
    });
  };

  const seen = (box) =>
    new Promise((resolve) => {
      const observer = new IntersectionObserver(
        (entries) => {
          if (!entries.some((entry) => entry.isIntersecting)) return;
          observer.disconnect();
          resolve();
        },
        { threshold: 0.6 },
      );
      observer.observe(box);
    });

  // Once a reader sees the picture, shows each stop of a plan, [[stop, milliseconds], ...]. A touch or a key of the
  // reader ends it. At its end a hint stands beside the control; whoever wants no motion gets the hint at once.
  const walk = async (box, control, plan, show) => {
    let taken = false;
    const take = (event) => {
      if (event.key === "Tab") return;
      taken = true;
      control.classList.remove("attnlib-drag");
    };
    box.addEventListener("pointerdown", take, true);
    box.addEventListener("keydown", take, true);
    await seen(box);
    for (const [stop, milliseconds] of calm() ? [] : plan) {
      await sleep(milliseconds);
      if (taken || !box.isConnected) return;
      await show(stop);
    }
    if (!taken) control.classList.add("attnlib-drag");
  };

  window.attnlibMotion = { glide, glideAll, walk };

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
