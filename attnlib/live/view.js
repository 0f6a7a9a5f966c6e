// Runs once for every live view, with `this` an element inside it: notebooks strip scripts, but not an onload attribute.
const box = this.closest('.attnlib-view');
this.dataset.fonts?.split(' ').forEach((font, italic) =>
  document.fonts.add(new FontFace('Inter', `url(${font})`, italic ? {style: 'italic'} : {weight: '400 600'})));

// For readers without a kernel, a still and a note stand in the two outputs before this one. They step aside while the
// view lives, whatever the front end calls an output: it is what stands behind the note, and holds nothing else.
const aside = () => {
  const lives = box.querySelector('.attnlib-live') && !box.matches('.jupyter-widgets-disconnected');
  for (let output = box; output; output = output.parentElement) {
    const before = output.previousElementSibling, note = before?.querySelector('.attnlib-note');
    if (!note || note.parentElement.textContent.trim() !== before.textContent.trim()) continue;
    for (const one of [before, before.previousElementSibling]) if (one) one.style.display = lives ? 'none' : '';
    return;
  }
};
new MutationObserver(aside).observe(box, {attributes: true, attributeFilter: ['class']});

// ipywidgets gives its sliders no accessible name: a screen reader would say "slider, 64" and not which. This copies
// the visible label onto the handle, once the front end has made it.
let tries = 0;
const timer = setInterval(() => {
  box.querySelectorAll('.widget-label').forEach(label => {
    label.dataset.says ||= label.textContent;
    label.parentElement.querySelectorAll('.noUi-handle, .ui-slider-handle').forEach(handle =>
      handle.setAttribute('aria-label', label.dataset.says));
    window.attnlibSets(label);
  });
  aside();
  stand();
  begin();
  if (++tries > 20) clearInterval(timer);
}, 200);

const targets = () => window.attnlibCells.targets(box), cellAt = window.attnlibCells.at;
const under = event => window.attnlibCells.under(box, event);

// The kernel hears of it through a hidden text field; `count` makes each message differ from the one before.
let count = 0;
const message = ({target, i, j}) => {
  const is = target.dataset;
  return {row: is.row, i: Number(is.first) + i, column: is.column, j, shown: is.shown};
};
const tell = (what, cell) => {
  const input = box.querySelector('.attnlib-mouse input');
  input.value = JSON.stringify({what, count: ++count, ...cell});
  input.dispatchEvent(new Event('input', {bubbles: true}));
};

// Without a mouse: a stop for the Tab key, at which arrow keys choose a cell. What is chosen is announced.
const keys = document.createElement('div');
keys.className = 'attnlib-keys';
keys.tabIndex = 0;
keys.setAttribute('role', 'application');
keys.setAttribute('aria-label', 'picture: arrow keys choose a cell');

const chosen = () => JSON.parse(box.querySelector('.attnlib-live').dataset.chosen);
// Maps of cells, and pictures that are chosen as a whole. A label chooses what a cell of its map chooses.
const maps = () => targets().filter(({dataset: is}) =>
  (is.row in chosen() || is.column in chosen()) && (is.row && is.column || is.rows * is.columns === 1));
// The front end makes the parts of a view one after the other. A picture in which no cell can be chosen gets no stop.
const stand = () => {
  const told = box.querySelector('.attnlib-readout');
  if (keys.isConnected || !told || !box.querySelector('.attnlib-live') || !maps().length && targets().length) return;
  told.setAttribute('aria-live', 'polite');
  box.querySelector('.attnlib-picture').before(keys);
};

const middle = ({target, i, j}) => {
  const place = target.getBoundingClientRect(), is = target.dataset;
  return [place.left + (j + 0.5) * place.width / is.columns, place.top + (i + 0.5) * place.height / is.rows];
};
const has = ({target, i, j}) => i >= 0 && j >= 0 && i < target.dataset.rows && j < target.dataset.columns;

// The cell that is next in a direction: of the same map, or beyond its edge of the nearest map there.
const next = (cell, right, down) => {
  const step = {...cell, i: cell.i + down, j: cell.j + right};
  if (has(step)) return step;
  const [x, y] = middle(cell);
  let best = cell, least = Infinity;
  for (const target of maps()) {
    const place = target.getBoundingClientRect();
    const near = [Math.min(Math.max(x, place.left + 1), place.right - 1), Math.min(Math.max(y, place.top + 1), place.bottom - 1)];
    const ahead = (near[0] - x) * right + (near[1] - y) * down;
    const aside = Math.abs((near[0] - x) * down) + Math.abs((near[1] - y) * right);
    if (target === cell.target || ahead <= 0 || ahead + 3 * aside >= least) continue;
    least = ahead + 3 * aside;
    best = cellAt(target, near);
  }
  return best;
};

let at; // {which, i, j}: the cell that was chosen last, of map `which`, since the picture is drawn anew at each step
const choose = (what, cell) => {
  at = {which: maps().indexOf(cell.target), i: cell.i, j: cell.j};
  tell(what, message(cell));
};
const press = event => {
  const way = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]}[event.key];
  const all = maps();
  if (!way || !all.length || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const last = {target: all[at?.which], ...at};
  if (last.target && has(last)) return choose('key', next(last, ...way));
  const target = all[0], {row, column, first} = target.dataset;
  const start = {target, i: (chosen()[row] ?? first) - first, j: chosen()[column] ?? 0};
  choose('key', has(start) ? start : {target, i: 0, j: 0});
};
// Before the notebook hears of them, to which arrow keys mean other cells.
keys.addEventListener('focus', () => window.addEventListener('keydown', press, true));
keys.addEventListener('blur', () => window.removeEventListener('keydown', press, true));

// The front end replaces a picture as a whole, and all of it would be laid out and drawn again. So a copy stands in its
// place, and changes only where the new one differs. The kernel leaves out parts that stand in the copy (view.py).
const path = (node, top) => node === top ? '' :
  `${path(node.parentNode, top)} ${node.nodeName} ${[...node.parentNode.childNodes].indexOf(node)}`;
let copied = null;
const begin = () => {
  const picture = box.querySelector('.attnlib-picture');
  if (copied || !picture?.querySelector('.attnlib-live')) return;
  copied = picture.cloneNode(true);
  picture.before(copied);
  picture.style.display = 'none';
  const [shown, hidden] = [copied, picture].map(one => one.querySelector('.attnlib-live').parentElement);
  hidden.replaceChildren();
  window.attnlibScrolls(shown.querySelector('.attnlib-live'), shown);
  window.attnlibGrows(box, () => copied.querySelector('.attnlib-live'));
  new MutationObserver(() => {
    if (!hidden.firstChild) return;
    const fresh = hidden.cloneNode();
    fresh.append(...hidden.childNodes);
    const part = hole => shown.querySelector(`[data-part="${hole.dataset.hole}"]`);
    const holes = [...fresh.querySelectorAll('[data-hole]')];
    if (!holes.every(part)) return; // the picture comes whole when it rests
    // Where a part stands elsewhere now, `become` would not meet it.
    holes.filter(hole => path(hole, fresh) !== path(part(hole), shown))
      .forEach(hole => hole.replaceWith(part(hole).cloneNode(true)));
    window.attnlibMotion.become(shown, fresh);
  }).observe(hidden, {childList: true});
};

let last = '';
box.addEventListener('click', event => {
  const cell = event.target.closest('svg') && under(event);
  if (cell) choose('click', cell);
});
box.addEventListener('mousemove', event => {
  const cell = event.target.closest('svg') && under(event);
  const told = cell && cell.target.dataset.shown ? message(cell) : null;
  box.style.cursor = cell ? 'pointer' : '';
  if (JSON.stringify(told) === last) return;
  last = JSON.stringify(told);
  tell(told ? 'over' : 'out', told);
});
