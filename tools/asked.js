// A question of a page: a click on an option shows the reply to it and opens what stood behind the fold. Nothing is
// counted, and nothing leaves the page.
for (const box of document.querySelectorAll(".attnlib-asked")) {
  const options = [...box.querySelectorAll("[role=radio]")];
  const [reply, again] = [box.querySelector(".attnlib-reply"), box.querySelector(".attnlib-again")];
  const fold = document.getElementById(box.dataset.opens);
  const answer = (chosen) => {
    options.forEach((option) => option.setAttribute("aria-checked", option === chosen));
    reply.replaceChildren(...(chosen ? [chosen.nextElementSibling.content.cloneNode(true)] : []));
    again.hidden = !chosen;
    if (fold) fold.open = Boolean(chosen);
  };
  options.forEach((option, k) => {
    option.addEventListener("click", () => answer(option));
    // Arrow keys only move on: a reader hears all options before one is chosen.
    option.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      options.at((k + step) % options.length).focus();
    });
  });
  again.addEventListener("click", () => {
    answer(null);
    options[0].focus();
  });
}
