// A browser reads no other file without a server: results of the search then have no excerpt, and lead to the first place
// of the word. With one, an excerpt is the paragraph of a page that says most of the words: code only where no text does.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
const BLOCKS = "p, li, dd, tr, pre, h2, h3, h4, [role=radio]";
const MARKS = { msub: "$_$", msup: "$^$", msubsup: "$_$^$", mfrac: "$ / $", msqrt: "√" };
// A formula as one types it: √d_k.
const typed = (part) => {
  const parts = [...part.children].map(typed);
  if (!parts.length) return /^[=≈+]$/.test(part.textContent) ? ` ${part.textContent} ` : part.textContent;
  const mark = MARKS[part.localName] ?? "";
  return mark.includes("$") ? mark.replace(/\$/g, () => parts.shift()) : mark + parts.join("");
};
const readable = (html) => {
  const page = new DOMParser().parseFromString(html, "text/html").querySelector("[role=main]");
  for (const part of page.querySelectorAll(".headerlink, .attnlib-run, svg, style, script, template, [role=radio] b")) part.remove();
  for (const part of page.querySelectorAll("math")) part.replaceWith(typed(part));
  for (const part of page.querySelectorAll("i + sub")) part.prepend("_");
  for (const part of page.querySelectorAll("td, th, br")) part.append(" ");
  return page;
};
// Who types sqrt means the page whose title says it in words.
if (typeof Scorer !== "undefined") Scorer.score = ([, title, , , score]) => score + (/\bsqrt\b/i.test(location.search) && /square root/.test(title) ? 20 : 0);
if (typeof Search !== "undefined")
  Search.makeSearchSummary = (html, words, anchor) => {
    const page = readable(html);
    const place = anchor ? page.querySelector(anchor) : null;
    const all = place?.matches("dt") ? [place.nextElementSibling] : [...(place ?? page).querySelectorAll(BLOCKS)].filter((one) => !one.querySelector(BLOCKS) || one.matches("li, tr"));
    const signs = [...words].map((word) => new RegExp(`(?<![a-z])${word === "sqrt" ? "(?:sqrt|√)" : word}`, "i"));
    const kind = (one) => (one.matches("pre") ? -0.3 : one.closest("details") ? -0.2 : one.matches("p, li, dd") ? 0.6 : 0);
    const told = (one) => signs.filter((sign) => sign.test(one.textContent)).length + kind(one) + Math.min(80, one.textContent.length) / 400;
    const [best] = all.map((one) => [told(one), one]).reduce((a, b) => (b[0] > a[0] ? b : a), [-1, place ?? page]).slice(1);
    const text = best.textContent.replace(/\s+/g, " ").trim();
    const at = Math.max(0, Math.min(...signs.map((sign) => text.search(sign)).filter((found) => found >= 0)));
    const from = text.length > 240 && at > 160 && at < text.length ? text.indexOf(" ", at - 90) + 1 : 0;
    const shown = text.slice(from, from + 240);
    const summary = document.createElement("p");
    summary.className = "context";
    summary.textContent = (from ? "… " : "") + (text.length > from + 240 ? `${shown.slice(0, shown.lastIndexOf(" "))} …` : shown);
    const section = best.closest("section");
    const heading = place?.matches("dt") ? place : place ? null : section?.querySelector(":scope > :is(h2, h3, h4)");
    if (heading) {
      if (!place) summary.dataset.at = section.id;
      summary.prepend(Object.assign(document.createElement("span"), { className: "section", textContent: heading.textContent }));
    }
    return summary;
  };
const results = document.querySelector("#search-results");
const [word] = (new URLSearchParams(location.search).get("q") ?? "").trim().split(/\s+/);
const land = () => {
  for (const link of results.querySelectorAll("li > a")) {
    const page = link.getAttribute("href");
    const at = link.parentElement.querySelector("[data-at]")?.dataset.at;
    if (at && !link.dataset.lands) link.setAttribute("href", `${page.split("#")[0]}#${(link.dataset.lands = at)}`);
    else if (!page.includes("#")) link.setAttribute("href", `${page}#:~:text=${encodeURIComponent(word)}`);
  }
};
if (results && word) new MutationObserver(land).observe(results, { childList: true, subtree: true });

// Code, formulas, printed text and tables scroll as pictures do: frames.js, which stands above this.
for (const box of document.querySelectorAll("article :is(pre, .attnlib-formula, .cell_output, .table-wrapper)"))
  window.attnlibScrolls(box);
// On paper a picture that asks first shows its answer.
let held = [];
addEventListener("beforeprint", () => {
  held = [...document.querySelectorAll(".attnlib-still:has(.attnlib-asks) [data-stage='1'][visibility=hidden]")];
  held.forEach((part) => part.removeAttribute("visibility"));
});
addEventListener("afterprint", () => held.forEach((part) => part.setAttribute("visibility", "hidden")));
