// A token of a project's application for one request.
import { existsSync, readFileSync } from "node:fs";
import { PlatformError } from "@platform/kernel/errors";
import { parseVariables } from "../data-folder/private-file.ts";
import { explain, send } from "./api-client.ts";
import { findService, type Target } from "./target.ts";

const LABEL = "identity";

/** A token, and the way to end it. */
export interface ApplicationToken {
  token: string;
  /** Revokes it; rejects if identity does not. */
  end: () => Promise<void>;
}

/**
 * Gets a token with the credentials in a file of an application. `scopes` limits it; empty: all that the application may
 * have. Throws 409 without such a file, and 422 for scopes that it may not have.
 */
export async function fetchApplicationToken(
  target: Target,
  path: string,
  scopes: readonly string[],
): Promise<ApplicationToken> {
  const stored = existsSync(path) ? parseVariables(readFileSync(path, "utf8")) : {};
  const { OIDC_CLIENT_ID: id, OIDC_CLIENT_SECRET: secret } = stored;
  if (id === undefined || secret === undefined) {
    throw new PlatformError("conflict", "The project has no credentials at identity.");
  }
  const { url } = findService(target, "auth", LABEL);
  const headers = { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}` };
  const post = async (place: string, form: Record<string, string>): Promise<string> => {
    const body = new URLSearchParams(form);
    const answer = await send(LABEL, new URL(place, url), { method: "POST", headers, body });
    const text = await answer.text();
    if (answer.ok) return text;
    throw new PlatformError("unprocessable", `${explain(LABEL, answer.status, text)}.`);
  };
  const text = await post("/api/v1/auth/token", {
    grant_type: "client_credentials",
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
  });
  const { access_token: token } = JSON.parse(text) as { access_token: string };
  return {
    token,
    end: async () => void (await post("/api/v1/auth/token/revoke", { token })),
  };
}
