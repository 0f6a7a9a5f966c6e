// What test_first_page.py asks of the page.
const all = (selector) => [...document.querySelectorAll(selector)];
window.first = {
  everyWord: () => [...document.querySelectorAll('#ribbons-picture .word')].map((word) => {
  word.dispatchEvent(new Event('click'));
  return [...document.querySelectorAll('#ribbons-picture .weight')].map((number) => number.textContent);
}),
  gaps: () => {
      const boxes = [...document.querySelectorAll('#ribbons-picture .name')].map((one) => one.getBBox());
      return boxes.slice(1).map((box, j) => box.x - boxes[j].x - boxes[j].width);
    },
  withhold: () => {
      for (const name of ['localStorage', 'sessionStorage', 'indexedDB', 'caches'])
        Object.defineProperty(window, name, { get() { throw new Error('withheld'); } });
  },
  cut: (selector) => document.querySelector(selector).scrollWidth > document.querySelector(selector).clientWidth,
  inside: (inner, outer) => {
    const [a, b] = [inner, outer].map((selector) => document.querySelector(selector).getBoundingClientRect());
    const wide = Math.max(...all(`${inner} *`).map((one) => one.getBoundingClientRect().right));
    return a.left >= b.left && Math.max(a.right, wide) <= b.right + 0.5;
  },
  end: (selector) => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector(selector));
    return range.getBoundingClientRect().right;
  },
  top: (selector) => document.querySelector(selector).getBoundingClientRect().y + scrollY,
  // How many pixels of what has the focus lie under the ribbons.
  covered: () => {
    const [a, b] = [document.activeElement, document.querySelector("#ribbons-picture")].map((one) => one.getBoundingClientRect());
    return b.bottom - a.top;
  },
  bar: () => document.querySelector("#bar").value,
  there: () => all("#ticks .there").length,
  guess: () => all("#ask button")[0].click(),
  heats: () => all("#heads .heat").map((one) => one.getAttribute("opacity")),
  path: (i) => all("#ribbons-picture path")[i].getAttribute("d"),
};
