// Code, formulas, printed text and tables scroll as pictures do: frames.js, which stands above this.
for (const box of document.querySelectorAll("article :is(pre, .attnlib-formula, .cell_output, .table-wrapper)"))
  window.attnlibScrolls(box);
