// How pictures move by themselves: view.js uses it where a kernel draws them, frames.js where none runs.
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
  const glide = (element, attribute, before, after, duration = 240) => {
    const style = styles[attribute];
    if (!style || !element.animate || before === after || before === null || after === null || calm()) return;
    const running = element.getAnimations().filter((animation) => animation.id === attribute);
    const from = running.length ? getComputedStyle(element)[attribute] : style(before);
    running.forEach((animation) => animation.cancel());
    const frames = { [attribute]: [from, style(after)] };
    element.animate(frames, { duration, easing: "ease-in-out", id: attribute });
  };

  // The same for a picture that has taken another's place, element by element.
  const glideAll = (before, after) => {
    const [old, fresh] = [before, after].map((picture) => [...picture.querySelectorAll(".attnlib-moves")]);
    if (old.length !== fresh.length) return;
    fresh.forEach((element, k) => {
      for (const attribute of element.getAttributeNames())
        glide(element, attribute, old[k].getAttribute(attribute), element.getAttribute(attribute), 160);
    });
  };

  const appear = (element) => calm() || element.animate([{ opacity: 0 }, { opacity: 1 }], 600);

  window.attnlibMotion = { glide, glideAll, appear };
}
