// Form elements: labelled fields with hints and errors, buttons, hidden fields.
import { html, type Html, type Part } from "./html.ts";
import type { Messages } from "./language/en.ts";
import type { Problem } from "./problem.ts";

/** A form field. */
export interface FieldOptions {
  name: string;
  /** Default: the name, which the error summary links to. Set if a page has several fields of that name. */
  id?: string;
  label: string;
  /** Default `text`. */
  type?: "text" | "password" | "email" | "tel";
  /** A token of the HTML standard; browsers and password managers use it. */
  autocomplete: string;
  value?: string | undefined;
  hint?: string;
  isOptional?: boolean;
  /** Focused when the page opens. */
  isFirst?: boolean;
  maxLength?: number;
  /** For a new password: names of the user, which it must not equal, besides those in the form. */
  names?: readonly (string | undefined)[];
  /** A code, shown in large characters. */
  isCode?: "numeric" | "text";
}

/** A labelled field with its error above it. */
export function field(messages: Messages, options: FieldOptions, problem?: Problem): Html {
  const { name, id = name, type = "text", hint, isCode } = options;
  const error = problem?.fields[name];
  const hasErrors = problem !== undefined && Object.keys(problem.fields).length > 0;
  // Browsers honour only the first autofocus.
  const hasFocus = hasErrors ? error !== undefined : options.isFirst === true;
  // An error message already says what is expected.
  const shownHint = error === undefined ? hint : undefined;
  const described = [
    shownHint === undefined ? "" : `${id}-hint`,
    error === undefined ? "" : `${id}-error`,
  ]
    .filter((part) => part !== "")
    .join(" ");
  return html`<div class="field">
    <label for="${id}"
      >${options.label}${options.isOptional === true && html` <span class="hint">${messages.optional}</span>`}</label
    >
    ${shownHint !== undefined && html`<p class="hint" id="${id}-hint">${shownHint}</p>`}
    ${error !== undefined && html`<p class="error" id="${id}-error">${error}</p>`}
    <input
      id="${id}"
      name="${name}"
      type="${type}"
      autocomplete="${options.autocomplete}"
      ${
        options.value !== undefined && html` value="${options.value}"`
      }${options.isOptional !== true && html` required`}${
        hasFocus && html` autofocus`
      }${options.maxLength !== undefined && html` maxlength="${options.maxLength}"`}${
        described !== "" && html` aria-describedby="${described}"`
      }${error !== undefined && html` aria-invalid="true"`}${
        isCode !== undefined && html` class="code" inputmode="${isCode}" spellcheck="false"`
      }${options.names !== undefined && html` data-names="${JSON.stringify(options.names.filter((item) => item !== undefined))}"`}${(type === "email" || options.autocomplete.startsWith("username")) && html` autocapitalize="none" spellcheck="false"`}
    />
  </div> `;
}

/** Hidden fields. */
export function hidden(fields: Readonly<Record<string, string | undefined>>): Part {
  return Object.entries(fields).map(
    ([name, value]) =>
      value !== undefined && html`<input type="hidden" name="${name}" value="${value}" />`,
  );
}

/** Styles of a button: one main action per form, the others quieter. */
export type ButtonKind = "main" | "quiet" | "danger" | "link";

/** A button. `name` and `value` identify it in the form; `label` is its accessible name if the text is ambiguous. */
export function button(
  text: string,
  options: {
    kind?: ButtonKind;
    name?: string;
    value?: string;
    label?: string;
    isFull?: boolean;
  } = {},
): Html {
  const { kind = "main", name, value, label, isFull } = options;
  const classes = [kind === "main" ? "" : kind, isFull === true ? "full" : ""].join(" ").trim();
  return html`<button
    type="submit"
    ${classes !== "" && html` class="${classes}"`}${
      name !== undefined && html` name="${name}" value="${value ?? ""}"`
    }${label !== undefined && html` aria-label="${label}"`}
  >
    ${text}
  </button>`;
}
