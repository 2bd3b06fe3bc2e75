"use strict";
for (const button of document.querySelectorAll("button[data-result]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const text = document.getElementById(button.dataset.result).textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = button.dataset.name;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
