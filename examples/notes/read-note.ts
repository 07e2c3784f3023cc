// Validation of new notes.
import { HttpError } from "@platform/service";

const TEXT_MAX = 10_000;
const NAME_MAX = 255;

/** A valid note. */
export interface NewNote {
  text: string;
  file: { key: string; name: string } | undefined;
  /** Epoch milliseconds. */
  remindAt: number | null;
}

/** Checks the body of a request; a file must be one that this user has uploaded. Throws an HttpError. */
export function readNote(body: unknown, userId: string): NewNote {
  const { text, file, remindAt = null } = (body ?? {}) as Record<string, unknown>;
  if (typeof text !== "string" || text.trim() === "" || text.length > TEXT_MAX)
    throw new HttpError(400, `text must have 1 to ${TEXT_MAX} characters.`);
  if (remindAt !== null && !Number.isSafeInteger(remindAt))
    throw new HttpError(400, "remindAt must be a time in milliseconds.");
  return { text: text.trim(), file: readFile(file, userId), remindAt: remindAt as number | null };
}

function readFile(file: unknown, userId: string): NewNote["file"] {
  if (file === undefined || file === null) return undefined;
  const { key, name } = file as Record<string, unknown>;
  if (typeof key !== "string" || !key.startsWith(`${userId}/`) || key.length > NAME_MAX)
    throw new HttpError(400, "file.key must come from /api/uploads.");
  if (typeof name !== "string" || name === "" || name.length > NAME_MAX)
    throw new HttpError(400, `file.name must have 1 to ${NAME_MAX} characters.`);
  return { key, name };
}
