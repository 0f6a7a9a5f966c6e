// A browser reads no other file without a server: results of the search then have no excerpt. A result without a section
// leads to where its first word stands.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
// An excerpt is the text of a page; between two blocks of it there is a space.
if (typeof Search !== "undefined") {
  const text = Search.htmlToText;
  Search.htmlToText = (page, ...rest) => text(page.replace(/<\/?(?:p|li|td|th|h\d|div|pre|summary|button|text|d[dt])\b/g, " $&"), ...rest).replace(/\s+/g, " ");
}
const results = document.querySelector("#search-results");
const [word] = (new URLSearchParams(location.search).get("q") ?? "").trim().split(/\s+/);
const land = () => {
  for (const link of results.querySelectorAll("li > a:not([href*='#'])")) link.setAttribute("href", `${link.getAttribute("href")}#:~:text=${encodeURIComponent(word)}`);
};
if (results && word) new MutationObserver(land).observe(results, { childList: true, subtree: true });

// Code, formulas, printed text and tables scroll as pictures do: frames.js, which stands above this.
for (const box of document.querySelectorAll("article :is(pre, .attnlib-formula, .cell_output, .table-wrapper)"))
  window.attnlibScrolls(box);
