// Records when a key went down and when the output below the slider next changed (a picture counts once decoded).
(() => {
  const area = document.querySelector(".jp-OutputArea");
  const watch = {
    start() {
      Object.assign(watch, { keys: [], frames: [], blank: 0 });
    },
  };
  let last;
  const painted = new MessageChannel(); // a message that is sent before a frame is drawn arrives after it
  painted.port1.onmessage = () => watch.frames.push(performance.now());
  const done = () => requestAnimationFrame(() => painted.port2.postMessage(0));
  const look = (changes) => {
    const image = area.querySelector(".jp-OutputArea img");
    const live = area.querySelector(".attnlib-live");
    if (!live && !image) watch.blank++;
    const ours = ({ target, addedNodes }) =>
      live?.contains(target) || [...addedNodes].some((node) => node.contains?.(live));
    if (live && changes.some(ours)) done();
    if (live || !image || image.src === last) return;
    last = image.src;
    image.decode().then(done, done);
  };
  watch.start();
  addEventListener("keydown", () => watch.keys.push(performance.now()), true);
  new MutationObserver(look).observe(area, { subtree: true, childList: true, attributes: true, characterData: true });
  look([]);
  window.watch = watch;
})();
