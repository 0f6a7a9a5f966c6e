// What test_first_page.py asks of the page.
const all = (selector) => [...document.querySelectorAll(selector)];
window.first = {
  everyWord: () => [...document.querySelectorAll('#stage .word')].map((word) => {
  word.dispatchEvent(new Event('click'));
  return [...document.querySelectorAll('#stage .num')].map((number) => number.textContent);
}),
  gaps: () => {
      const boxes = [...document.querySelectorAll('#stage .name')].map((one) => one.getBBox());
      return boxes.slice(1).map((box, j) => box.x - boxes[j].x - boxes[j].width);
    },
  withhold: () => {
      for (const name of ['localStorage', 'sessionStorage', 'indexedDB', 'caches'])
        Object.defineProperty(window, name, { get() { throw new Error('withheld'); } });
  },
  top: (selector) => document.querySelector(selector).getBoundingClientRect().y + scrollY,
  style: (selector) => getComputedStyle(document.querySelector(selector)),
  colour: (selector) => first.style(selector).color,
  ours: () => document.querySelector("#ours").value,
  bar: () => document.querySelector("#bar").value,
  guess: () => all("#guess button")[0].click(),
  curves: [], // the path of the curve, and where its dots are, each time that it is drawn
  watchCurve: () => {
      const chart = document.querySelector("#chart");
      const note = () => first.curves.push([chart.querySelector(".l")?.getAttribute("d") ?? "", [...chart.querySelectorAll("circle")].map((dot) => Number(dot.getAttribute("cx")))]);
      note();
      new MutationObserver(note).observe(chart, { childList: true });
  },
  reading: [], // while a sentence is read: what is said beside the field, the answer, the words of scene 3, and how many words are still pale
  watchReading: () => {
      const note = () => first.reading.push([document.querySelector("#said").textContent, document.querySelector("#answer").innerText.trim(), document.querySelector("#trained-words").textContent + document.querySelector("#broken-words").textContent, all("#stage .later").length]);
      new MutationObserver(note).observe(document.querySelector("#said"), { childList: true });
  },
  path: (i) => all("#stage path.band")[i].getAttribute("d"),
  // The sizes of all text that is seen, as it is seen, without subscripts, each with a word.
  sizes: () =>
    all("body *")
      .filter((one) => one.getClientRects().length && !one.closest("sub") && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
      .filter((one) => !one.matches("script, style, option"))
      .map((one) => {
        const svg = one.closest("svg"), box = svg?.viewBox.baseVal;
        return [parseFloat(getComputedStyle(one).fontSize) * (box?.width ? svg.getBoundingClientRect().width / box.width : 1), one.textContent.trim().slice(0, 20)];
      }),
};
