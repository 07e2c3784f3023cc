// Shows a password on request, and how strong a new one is. Nothing that is typed leaves the page before the form is sent.
import { judge, readCommon } from "./strength.js";

const QUIET_MS = 600;
const LEVELS = 4;

const { dataset } = document.body;
const texts = JSON.parse(dataset.passwordTexts);
const words = JSON.parse(dataset.serviceWords);

const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};

for (const input of document.querySelectorAll("input[type=password]")) {
  const toggle = make("button", { type: "button", className: "reveal" });
  const show = (isShown) => {
    input.type = isShown ? "text" : "password";
    toggle.textContent = isShown ? texts.hide : texts.show;
    toggle.ariaLabel = isShown ? texts.hideLabel : texts.showLabel;
  };
  show(false);
  toggle.addEventListener("click", () => show(input.type === "password"));
  // Password managers save what is in password fields.
  input.form.addEventListener("submit", () => show(false));
  const box = make("div", { className: "password" });
  input.before(box);
  box.append(input, toggle);
  if (input.autocomplete === "new-password") measure(input, box);
}

function measure(input, box) {
  const bar = make("div", { className: "strength", ariaHidden: "true", hidden: true });
  for (let index = 0; index < LEVELS; index += 1) bar.append(make("span"));
  // Screen readers speak only when the typing pauses.
  const said = make("p", { className: "hint", role: "status" });
  box.after(bar, said);

  let isCommon;
  let loading;
  let timer;
  const update = () => {
    clearTimeout(timer);
    bar.hidden = input.value === "";
    if (bar.hidden) {
      said.textContent = "";
      return;
    }
    const { problem, missing, strength } = judge(input.value, {
      names: listNames(input),
      words,
      isCommon,
    });
    bar.dataset.level = strength ?? 0;
    const text =
      problem === undefined ? texts.levels[strength - 1] : texts[problem].replace("{n}", missing);
    timer = setTimeout(() => {
      said.textContent = text;
    }, QUIET_MS);
  };
  input.addEventListener("input", () => {
    // The list is loaded when the first password is typed. Without it the service still rejects common ones.
    loading ??= import(dataset.commonPasswords).then(
      ({ default: list }) => {
        isCommon = readCommon(list);
        update();
      },
      () => undefined,
    );
    update();
  });
  for (const name of ["username", "email"]) {
    input.form.elements[name]?.addEventListener("input", update);
  }
}

function listNames(input) {
  const { username, email } = input.form.elements;
  return [username?.value, email?.value.trim(), ...JSON.parse(input.dataset.names ?? "[]")].filter(
    (name) => name !== undefined && name !== "",
  );
}
