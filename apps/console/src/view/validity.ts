// Messages of the browser's own validation, which speaks the browser's language rather than the page's.
import { t } from "../words/words.ts";

type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** Replaces the messages of all fields by those of the language in use. */
export function startValidity(): void {
  // Neither event of a field bubbles in all cases: both are caught on their way down.
  document.addEventListener(
    "invalid",
    ({ target }) => {
      if (isField(target)) target.setCustomValidity(wordValidity(target));
    },
    { capture: true },
  );
  // A field with such a message is invalid until it is taken away.
  for (const event of ["input", "change"]) {
    document.addEventListener(
      event,
      ({ target }) => {
        if (isField(target)) target.setCustomValidity("");
      },
      { capture: true },
    );
  }
}

function isField(target: EventTarget | null): target is Field {
  return (
    target instanceof HTMLInputElement ||
    target instanceof HTMLSelectElement ||
    target instanceof HTMLTextAreaElement
  );
}

function wordValidity(field: Field): string {
  const { validity } = field;
  const { min = "", max = "" } = field instanceof HTMLInputElement ? field : {};
  if (validity.valueMissing) return t("Required");
  if (validity.badInput) return t("A number is expected");
  if (validity.typeMismatch) {
    return field.type === "url"
      ? t("A URL, such as https://example.com/path")
      : t("An email address, such as ann@example.com");
  }
  if (validity.rangeUnderflow) return t("At least {min}", { min });
  if (validity.rangeOverflow) return t("At most {max}", { max });
  if (validity.stepMismatch) return t("A whole number is expected");
  return t("Not valid");
}
