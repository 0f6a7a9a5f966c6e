// Runs once for every live view, with `this` an element inside it: notebooks strip scripts, but not an onload attribute.
const box = this.closest('.attnlib-view');

// ipywidgets gives its sliders no accessible name: a screen reader would say "slider, 64" and not which. This copies
// the visible label onto the handle, once the front end has made it.
let tries = 0;
const timer = setInterval(() => {
  box.querySelectorAll('.widget-label').forEach(label =>
    label.parentElement.querySelectorAll('.noUi-handle, .ui-slider-handle').forEach(handle =>
      handle.setAttribute('aria-label', label.textContent)));
  if (++tries > 20) clearInterval(timer);
}, 200);

// The cell of a map, the label or the head under the mouse. Targets are only measured: tooltips below them still work.
const under = event => {
  for (const target of box.querySelectorAll('.attnlib-target')) {
    const place = target.getBoundingClientRect(), is = target.dataset;
    const x = (event.clientX - place.left) / place.width, y = (event.clientY - place.top) / place.height;
    if (x < 0 || x >= 1 || y < 0 || y >= 1) continue;
    const i = Number(is.first) + Math.floor(y * is.rows), j = Math.floor(x * is.columns);
    return {row: is.row, i, column: is.column, j, shown: is.shown};
  }
};

// The kernel hears of it through a hidden text field; `count` makes each message differ from the one before.
let count = 0;
const tell = (what, cell) => {
  const input = box.querySelector('.attnlib-mouse input');
  input.value = JSON.stringify({what, count: ++count, ...cell});
  input.dispatchEvent(new Event('input', {bubbles: true}));
};

let last = '';
box.addEventListener('click', event => {
  const cell = event.target.closest('svg') && under(event);
  if (cell) tell('click', cell);
});
box.addEventListener('mousemove', event => {
  const cell = event.target.closest('svg') && under(event);
  const now = cell && cell.shown ? JSON.stringify(cell) : '';
  box.style.cursor = cell ? 'pointer' : '';
  if (now === last) return;
  last = now;
  tell(now ? 'over' : 'out', now ? cell : {});
});
