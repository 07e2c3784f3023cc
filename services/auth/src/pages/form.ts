// The parts of forms: labelled fields with hints and errors, buttons, and forms that carry their CSRF token.
import { html, type Html, type Part } from "./html.ts";
import type { Messages } from "./language/en.ts";
import type { Problem } from "./problem.ts";

/** One field of a form. */
export interface FieldOptions {
  name: string;
  /** Default is the name, to which the error summary links; another one where a page has several of that name. */
  id?: string;
  label: string;
  /** Default `text`. */
  type?: "text" | "password" | "email" | "tel";
  /** As the HTML standard names it; browsers and password managers fill in by it. */
  autocomplete: string;
  value?: string | undefined;
  hint?: string;
  isOptional?: boolean;
  /** Has the focus when the page opens. */
  isFirst?: boolean;
  maxLength?: number;
  /** A code: digits, in large letters. */
  isCode?: "numeric" | "text";
}

/** A labelled field; what `problem` says of it stands above it. */
export function field(messages: Messages, options: FieldOptions, problem?: Problem): Html {
  const { name, id = name, type = "text", hint, isCode } = options;
  const error = problem?.fields[name];
  const hasErrors = problem !== undefined && Object.keys(problem.fields).length > 0;
  // The first of them: browsers take no second one.
  const hasFocus = hasErrors ? error !== undefined : options.isFirst === true;
  // What is wrong says what would be right.
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
      }${(type === "email" || options.autocomplete === "username") && html` autocapitalize="none" spellcheck="false"`}
    />
  </div> `;
}

/** Values that the form carries along. */
export function hidden(fields: Readonly<Record<string, string | undefined>>): Part {
  return Object.entries(fields).map(
    ([name, value]) =>
      value !== undefined && html`<input type="hidden" name="${name}" value="${value}" />`,
  );
}

/** How a button looks: one main action a form, the rest quieter. */
export type ButtonKind = "main" | "quiet" | "danger" | "link";

/** A button; `name` and `value` tell which one was pressed, `label` says more to those who do not see what is around. */
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
