"use strict";
// Copy buttons: each copies the text of the element named by data-of.
(() => {
  function fallback(element) {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return document.execCommand("copy");
  }

  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const element = document.getElementById(button.dataset.of);
      let done = true;
      try {
        await navigator.clipboard.writeText(element.textContent);
      } catch {
        done = fallback(element);
      }
      button.textContent = done ? "Copied" : "Select the text and copy it";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
  }
})();
