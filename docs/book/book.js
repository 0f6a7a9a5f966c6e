// What is wider than its box can be scrolled with the keyboard, too: it takes the focus, and nothing else does.
{
  const wide = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.setAttribute("tabindex", 0);
      else target.removeAttribute("tabindex");
    }
  });
  const boxes = "article :is(pre, .attnlib-formula, .cell_output, .table-wrapper)";
  for (const box of document.querySelectorAll(boxes)) wide.observe(box);
}
