// Copies, saves and prints backup codes. Without this script they can be selected and printed by the browser.
const tools = document.querySelector("[data-codes]");
const said = document.querySelector("[data-said]");
const codes = [...document.querySelectorAll(".codes li")].map((item) => item.textContent.trim());

const actions = {
  copy: async () => {
    await navigator.clipboard.writeText(codes.join("\n"));
    said.textContent = tools.dataset.copied;
  },
  save: async () => {
    const text = `${tools.dataset.heading}\n\n${codes.join("\n")}\n`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = tools.dataset.file;
    link.click();
    URL.revokeObjectURL(url);
  },
  print: async () => window.print(),
};

for (const button of tools.querySelectorAll("button")) {
  // The clipboard needs https, or localhost.
  button.hidden = button.value === "copy" && navigator.clipboard === undefined;
  button.addEventListener("click", () => {
    said.textContent = "";
    actions[button.value]().catch(() => {
      said.textContent = tools.dataset.failed;
    });
  });
}
tools.hidden = false;
