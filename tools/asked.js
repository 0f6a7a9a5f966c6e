// A question of a page: a click on an option shows the reply to it and opens what stood behind the fold. Nothing is
// counted, and nothing leaves the page.
for (const box of document.querySelectorAll("div.attnlib-asked")) {
  const options = [...box.querySelectorAll("[role=radio]")];
  const [reply, again] = [box.querySelector(".attnlib-reply"), box.querySelector(".attnlib-again")];
  const fold = document.getElementById(box.dataset.opens);
  const answer = (chosen) => {
    box.classList.toggle("attnlib-done", Boolean(chosen));
    for (const option of options) {
      const right = option.value === box.dataset.right;
      option.setAttribute("aria-checked", option === chosen);
      option.classList.toggle("attnlib-yes", Boolean(chosen) && right);
      option.classList.toggle("attnlib-no", option === chosen && !right);
    }
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

// The number that a formula such as (36 / 9) ** 0.5 or sqrt(4) makes; NaN for what is none.
const formula = (words) => {
  const code = words.replace(/(?:\w+\.)?sqrt|√(?=\()/g, "Math.sqrt").replace(/√\s*([\d.]+)/g, "Math.sqrt($1)").replace(/\^/g, "**");
  if (!/^(Math\.sqrt|e|[\d.\s+\-*/()])+$/i.test(code)) return NaN;
  try {
    return Number(Function(`"use strict"; return (${code})`)());
  } catch {
    return NaN;
  }
};
// Several stand between commas, or as numbers between spaces.
const numbers = (words) => {
  const inside = words.trim().replace(/^\[(.*)\]$/, "$1"), plain = /[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi;
  if (!/[*/^(√]|\d\s*[-+]\s+\d|\d[-+]\d/.test(inside.replace(/e[-+]/gi, "e"))) return (inside.match(plain) ?? []).map(Number);
  const made = inside.split(",").map(formula);
  return made.some(Number.isNaN) ? [] : made;
};

// 0,75 and 1,5 have a decimal comma, 1,000.5 and 1,000,000 have thousands; of 1,000 nobody can know.
const UNCLEAR = /^[-+]?[1-9]\d{0,2},\d{3}$/;
const commas = (word) => {
  if (/^[-+]?[1-9]\d{0,2}(,\d{3}){2,}$|^[-+]?[1-9]\d{0,2}(,\d{3})+\.\d*$/.test(word)) return Number(word.replaceAll(",", ""));
  if (/^[-+]?\d*,\d+$/.test(word) && !UNCLEAR.test(word)) return Number(word.replace(",", "."));
  return /^[-+]?(\d+\.?\d*|\.\d+)$/.test(word) ? Number(word) : NaN;
};
// What was typed where `count` numbers are asked for: {numbers, told: how they were read, if that is not plain to see}.
const read = (words, count) => {
  const parts = words.trim().replace(/^\[(.*)\]$/, "$1").split(/[;\s]+|,\s+/), made = parts.map(commas);
  if (parts.length !== count || !parts.some((part) => part.includes(","))) return { numbers: numbers(words) };
  const unclear = parts.find((part) => UNCLEAR.test(part));
  if (unclear) return { numbers: [], told: `“${unclear}” can be ${unclear.replace(",", "")} or ${unclear.replace(",", ".")}: write it without a comma.` };
  return made.some(Number.isNaN) ? { numbers: numbers(words) } : { numbers: made, told: `Read as ${made.join(", ")}.` };
};

// Numbers that a reader has found: right, a mistake that has a name, or neither.
for (const form of document.querySelectorAll("form.attnlib-asked"))
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const replies = [...form.querySelectorAll("template")], words = form.querySelector("input").value.trim();
    let { numbers: given, told } = read(words, JSON.parse(replies[0].dataset.of).length);
    const near = (known) => {
      const largest = Math.min(1, Math.max(...known.map(Math.abs))) || 1;
      const within = (y, i) => Math.abs(given[i] - y) <= form.dataset.tolerance * (largest + Math.abs(y));
      return known.length === given.length && known.every(within);
    };
    const fits = replies.slice(0, -2).find((reply) => near(JSON.parse(reply.dataset.of)));
    const reply = (given.length ? (fits ?? replies.at(-2)) : replies.at(-1)).content.cloneNode(true);
    const title = reply.querySelector("strong"), line = document.createElement("div");
    if (given.length && !fits) told = `Yours is ${given.map((x) => Number(x.toPrecision(6))).join(", ")}.`;
    if (!given.length && words) {
      title.textContent = title.textContent.replace("not tried yet", "not read");
      told ??= `“${words}” is no number. Write one such as 0.75 or 6/3.`;
    }
    line.textContent = told ?? "";
    if (told) title.after(line);
    form.querySelector(".attnlib-reply").replaceChildren(reply);
  });
