// Records when a key went down and when the output below the slider next changed (a picture counts once decoded).
(() => {
  const area = document.querySelector(".jp-OutputArea");
  const watch = {
    start() {
      Object.assign(watch, { keys: [], frames: [], blank: 0 });
    },
  };
  let last;
  const done = () => watch.frames.push(performance.now());
  const look = () => {
    const image = area.querySelector(".jp-OutputArea img");
    const svg = area.querySelector(".attnlib-live svg");
    const content = svg ? svg.parentElement.innerHTML : image && image.src;
    if (!content) watch.blank++;
    if (!content || content === last) return;
    last = content;
    if (svg) requestAnimationFrame(done);
    else image.decode().then(done, done);
  };
  watch.start();
  addEventListener("keydown", () => watch.keys.push(performance.now()), true);
  new MutationObserver(look).observe(area, { subtree: true, childList: true, attributes: true, characterData: true });
  look();
  window.watch = watch;
})();
