// The bootstrap file: the client of the `platform` command, and the first administrator.
import { readFileSync, statSync } from "node:fs";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import { MANAGEMENT_SCOPES, PLATFORM_SCOPES } from "../database/rbac.ts";
import { CLI_CLIENT_ID, CONSOLE_CLIENT_ID } from "../oauth/core/lifetimes.ts";
import type { OAuth } from "../oauth/oauth.ts";
import { ADMIN_ROLE } from "../rbac/grant.ts";
import type { PolicyStore } from "../rbac/policy-store.ts";

const FILE_BYTES_MAX = 65_536;

const fileSchema = z.strictObject({
  client_secret: z.string().min(32).max(1024),
  console: z
    .strictObject({
      client_secret: z.string().min(32).max(1024),
      url: z.url({ protocol: /^https?$/ }).max(1024),
    })
    .optional(),
  administrator: z
    .strictObject({ username: z.string().min(1).max(64), password: z.string().min(1).max(1024) })
    .optional(),
});

/** Content of the file. */
export type Bootstrap = z.output<typeof fileSchema>;

/** Reads the file. Throws an error that names the file and the problem, never a value. */
export function readBootstrapFile(path: string): Bootstrap {
  const result = fileSchema.safeParse(parse(path, readPrivate(path)));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Error(
    `bootstrap_file ${path}: ${issue?.path.join(".") || "the document"} ${issue?.message}`,
  );
}

/** Creates or updates the client, which gets the role `admin`. */
export async function provideCliClient(
  options: { oauth: OAuth; policy: PolicyStore; audit: AuditLog },
  secret: string,
): Promise<void> {
  const { oauth, policy, audit } = options;
  const isChanged = await oauth.clients.provide(CLI_CLIENT_ID, secret, {
    client_name: "platform command line",
    grant_types: ["client_credentials"],
    response_types: [],
    redirect_uris: [],
    scope: [...MANAGEMENT_SCOPES].join(" "),
    first_party: true,
  });
  const subject = { kind: "client", id: CLI_CLIENT_ID } as const;
  if (!(await policy.listBindings("client", CLI_CLIENT_ID)).includes(ADMIN_ROLE))
    await policy.changeBindings(subject, "add", [ADMIN_ROLE], undefined);
  if (!isChanged) return;
  const client = `client:${CLI_CLIENT_ID}`;
  await audit.record({ action: "client.bootstrap", actor: client, target: client, ip: "" });
}

/** Creates or updates the client of the web console at `url`. Users need no consent to use it. */
export async function provideConsoleClient(
  { oauth, audit }: { oauth: OAuth; audit: AuditLog },
  { client_secret: secret, url }: NonNullable<Bootstrap["console"]>,
): Promise<void> {
  const { origin } = new URL(url);
  const isChanged = await oauth.clients.provide(CONSOLE_CLIENT_ID, secret, {
    client_name: "platform console",
    application_type: "web",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    redirect_uris: [`${origin}/console/oidc/callback`],
    post_logout_redirect_uris: [`${origin}/ui/sign-in`],
    ...describeLogoutNotice(origin),
    // ID tokens name the session (`sid`), which logout tokens and `id_token_hint` refer to.
    backchannel_logout_session_required: true,
    scope: ["openid", "profile", "offline_access", ...PLATFORM_SCOPES].join(" "),
    first_party: true,
  });
  if (!isChanged) return;
  const client = `client:${CONSOLE_CLIENT_ID}`;
  await audit.record({ action: "client.bootstrap", actor: client, target: client, ip: "" });
}

// Notices pass the egress guard, which refuses this machine; there services follow the revocation feed.
function describeLogoutNotice(origin: string) {
  if (!origin.startsWith("https:")) return {};
  return { backchannel_logout_uri: `${origin}/console/oidc/backchannel` };
}

function readPrivate(path: string): string {
  try {
    const { mode, size } = statSync(path);
    if (process.platform !== "win32" && (mode & 0o077) !== 0)
      throw new Error("other users may read it; run chmod 600");
    if (size > FILE_BYTES_MAX) throw new Error("it is too large");
    return readFileSync(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`bootstrap_file ${path} cannot be used: ${reason}`, { cause: error });
  }
}

// The parser's message may quote the text, which contains secrets.
function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`bootstrap_file ${path} is not valid JSON`);
  }
}
