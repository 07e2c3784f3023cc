// Templates as the service reports them, and as they are edited.
import type { Answer } from "../contract/answer.ts";

/** A template with its content. */
export type Template = Answer<"notify", "GET /templates/{name}">;

/** Parts of a template. */
export const PARTS = ["subject", "html", "text"] as const;

/** A part that is edited as code. */
export type Part = "html" | "text";

/** Content in an editor: "" for a part that is absent. */
export type Draft = Record<(typeof PARTS)[number], string>;

/** Converts a content to a draft. */
export function toDraft(content: Pick<Template, "subject" | "html" | "text">): Draft {
  return { subject: content.subject, html: content.html ?? "", text: content.text ?? "" };
}
