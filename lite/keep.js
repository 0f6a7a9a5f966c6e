// In the notebooks of the site Python takes seconds to start. A line says so until it is there; and what a cell showed
// stays until the cell shows something new or has ended: JupyterLab would empty it at once.
{
  const line = document.createElement("p");
  line.role = "status";
  line.className = "attnlib-loads";
  line.style.cssText =
    "position: fixed; z-index: 9; bottom: 1.5rem; left: 50%; translate: -50%; width: max-content; max-width: 90%; margin: 0; padding: .5rem 1rem; border-radius: .5rem; background: #1d1d1b; color: white; font: 14px/1.4 system-ui, sans-serif";
  const says = (words) => {
    if (line.textContent !== words) line.textContent = words;
  };
  const notebook = () => [...(window.jupyterapp?.shell.widgets("main") ?? [])].find((one) => one.context?.sessionContext);
  const ready = () => notebook()?.context.sessionContext.session?.kernel?.status === "idle";
  let started = false;
  // Of a link to a cell: JupyterLab looks for it before the notebook is there, and what is drawn above the cell moves it. So
  // it is looked for until Python is there, or a reader moves.
  let goal = location.hash;
  const acts = ["wheel", "touchmove", "pointerdown", "keydown"];
  for (const act of acts) addEventListener(act, () => (goal = ""), { capture: true, once: true });
  const timer = setInterval(() => {
    if (goal && notebook()?.context.isReady) {
      const { content } = notebook();
      const place = content.widgets.findIndex((cell) => goal === `#cell-id=${cell.model.id}`);
      if (place < 0) goal = "";
      else content.scrollToItem((content.activeCellIndex = place), "start");
    }
    if (document.querySelector(".jp-Notebook .jp-Cell"))
      says("Python is loading: 12 to 20 seconds at the first visit. A cell that you run now waits for it, and keeps its picture.");
    if (!ready()) return;
    started = true;
    clearInterval(timer);
    line.remove();
  }, 200);
  says("JupyterLab is loading: about 5 seconds, and 40 MB at the first visit.");
  document.body.append(line);

  const asked = (cell) => cell.querySelector(".jp-InputPrompt")?.textContent.includes("*");
  const keep = (area, outputs) => {
    const cell = area.closest(".jp-CodeCell");
    if (!cell || !outputs.length || (started && !asked(cell))) return;
    const kept = document.createElement("div");
    kept.className = "attnlib-kept";
    kept.append(...outputs.map((output) => output.cloneNode(true)));
    kept.querySelectorAll("style[onload]").forEach((script) => script.remove());
    area.before(kept);
    const wait = setInterval(() => {
      if ((asked(cell) || !started) && !area.querySelector(".jp-OutputArea-child")) return;
      clearInterval(wait);
      kept.remove();
    }, 50);
  };
  const watch = (changes) => {
    for (const { target, removedNodes } of changes)
      if (target.matches?.(".jp-OutputArea")) keep(target, [...removedNodes].filter((node) => node.matches?.(".jp-OutputArea-child")));
  };
  new MutationObserver(watch).observe(document.body, { childList: true, subtree: true });
}
