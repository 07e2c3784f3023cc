// The text of a session in a shared store: encrypted, and bound to the session's id.
import { hash } from "node:crypto";
import type { SecretBox } from "@platform/kernel/secrets";
import type { ServiceId } from "../contract.ts";
import type { Credential, Session } from "./session.ts";

/** A session without its last use, which changes with each request and is stored beside it. */
type StoredSession = Omit<Session, "id" | "lastUsedMs" | "credentials"> & {
  credentials: [ServiceId, Credential][];
};

/** Seals a session. */
export function sealSession(session: Session, box: SecretBox): string {
  const { id, lastUsedMs: _lastUsed, credentials, ...rest } = session;
  const stored: StoredSession = { ...rest, credentials: [...credentials] };
  return box.seal(JSON.stringify(stored), namePlace(id));
}

/** Opens a session. Throws if it was sealed with an unknown key, for another id, or was changed. */
export function openSession(
  sealed: string,
  { id, lastUsedMs, box }: { id: string; lastUsedMs: number; box: SecretBox },
): Session {
  const { credentials, ...rest } = JSON.parse(box.open(sealed, namePlace(id))) as StoredSession;
  return { ...rest, credentials: new Map(credentials), id, lastUsedMs };
}

/** Hash of a subject or session of identity, by which sessions are found; empty for undefined. */
export function hashSubject(value: string | undefined): string {
  return value === undefined ? "" : hash("sha256", value, "base64url");
}

function namePlace(id: string): string {
  return `session ${id}`;
}
