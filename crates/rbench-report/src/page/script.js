"use strict";
async function saved(element) {
  if (element.type === "application/json") return new Blob([element.textContent], { type: "application/json" });
  const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Blob([await new Response(unpacked).arrayBuffer()], { type: "application/json" });
}
for (const button of document.querySelectorAll("button[data-result]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await saved(document.getElementById(button.dataset.result)));
    link.download = button.dataset.name;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
