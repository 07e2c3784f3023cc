// Settings of the client: options of the command line, or a YAML or JSON file with several tunnels.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parseDocument } from "yaml";
import { z } from "zod";
import { type ClientOptions, DEFAULT_RELAY } from "../config.ts";
import { parseTarget, type Target } from "./target.ts";

/** A tunnel to open. */
export interface TunnelSettings {
  readonly kind: "http" | "tcp";
  readonly target: Target;
  /** The target as typed; shown and sent to the relay. */
  readonly targetText: string;
  readonly subdomain: string | undefined;
  readonly customDomain: string | undefined;
  readonly remotePort: number | undefined;
  readonly hostHeader: string;
  readonly authRequired: boolean;
  readonly shareAuth: string | undefined;
}

export interface ClientSettings {
  readonly relay: string;
  readonly token: string | undefined;
  readonly tunnels: readonly TunnelSettings[];
}

/** Thrown for unusable settings; the message is for the user. */
export class SettingsError extends Error {}

const text = z.string().min(1).max(1_024);

const fileTunnel = z
  .strictObject({
    /** Port or any other target; the specification's name. */
    port: z.union([text, z.int()]).optional(),
    target: text.optional(),
    subdomain: text.optional(),
    custom_domain: text.optional(),
    host_header: text.optional(),
    auth_required: z.boolean().optional(),
    share_auth: text.regex(/^[^:]+:.+$/, "user:password").optional(),
    tcp: z.boolean().optional(),
    remote_port: z.int().min(1).max(65_535).optional(),
  })
  .refine((tunnel) => (tunnel.port === undefined) !== (tunnel.target === undefined), {
    message: "needs either port or target",
  });

const fileSchema = z.strictObject({
  relay: z.url({ protocol: /^wss?$/ }).optional(),
  token: text.optional(),
  tunnels: z.array(fileTunnel).min(1).max(100),
});

const FILE_BYTES_MAX = 1_048_576;
const LABEL_CHARACTERS_MAX = 63;

/** Resolves the settings. `typed` is the target on the command line. Throws `SettingsError` or `TargetError`. */
export function resolveSettings(options: ClientOptions, typed: string | undefined): ClientSettings {
  const file = options.config === undefined ? undefined : readSettingsFile(options.config);
  if (file !== undefined && typed !== undefined) {
    throw new SettingsError("a target cannot be combined with --config");
  }
  if (file === undefined && typed === undefined) {
    throw new SettingsError("a target is required: a port, host:port, a URL or a folder");
  }
  const tunnels =
    file === undefined
      ? [fromOptions(options, typed!)]
      : file.tunnels.map((tunnel) => fromFile(tunnel, options));
  return {
    relay: options.relay ?? file?.relay ?? DEFAULT_RELAY,
    token: options.token ?? file?.token,
    tunnels,
  };
}

function fromOptions(options: ClientOptions, typed: string): TunnelSettings {
  return {
    kind: options.tcp ? "tcp" : "http",
    target: parseTarget(typed, options.tls_verify),
    targetText: typed,
    subdomain: resolveSubdomain(options.subdomain),
    customDomain: options.custom_domain,
    remotePort: options.remote_port,
    hostHeader: options.host_header,
    authRequired: options.auth_required,
    shareAuth: options.share_auth,
  };
}

function fromFile(tunnel: z.output<typeof fileTunnel>, options: ClientOptions): TunnelSettings {
  const typed = String(tunnel.target ?? tunnel.port);
  return {
    kind: tunnel.tcp === true ? "tcp" : "http",
    target: parseTarget(typed, options.tls_verify),
    targetText: typed,
    subdomain: resolveSubdomain(tunnel.subdomain),
    customDomain: tunnel.custom_domain,
    remotePort: tunnel.remote_port,
    hostHeader: tunnel.host_header ?? options.host_header,
    authRequired: tunnel.auth_required ?? options.auth_required,
    shareAuth: tunnel.share_auth ?? options.share_auth,
  };
}

function readSettingsFile(path: string): z.output<typeof fileSchema> {
  let source: string;
  try {
    source = readFileSync(path, "utf8");
  } catch (error) {
    throw new SettingsError(`${path}: ${(error as Error).message}`);
  }
  if (source.length > FILE_BYTES_MAX) throw new SettingsError(`${path}: larger than 1 MiB`);
  const result = fileSchema.safeParse(parseFile(path, source));
  if (result.success) return result.data;
  const lines = result.error.issues.map(({ path: at, message }) => {
    const place = at.map(String).join(".");
    return place === "" ? `${path}: ${message}` : `${path}: ${place}: ${message}`;
  });
  throw new SettingsError(lines.join("\n"));
}

/** Reads YAML, of which JSON is a part. */
function parseFile(path: string, source: string): unknown {
  const document = parseDocument(source, { uniqueKeys: true });
  const [problem] = document.errors;
  if (problem !== undefined) throw new SettingsError(`${path}: ${problem.message}`);
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    // Nested ones could expand without end.
    throw new SettingsError(`${path}: aliases (*name) are not supported`);
  }
}

/** `git` becomes a label of the current branch. */
function resolveSubdomain(wanted: string | undefined): string | undefined {
  if (wanted !== "git") return wanted;
  let branch: string;
  try {
    branch = execFileSync("git", ["symbolic-ref", "--short", "HEAD"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 5_000,
    }).trim();
  } catch {
    throw new SettingsError("--subdomain git: there is no current branch in this folder");
  }
  const label = branch
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, LABEL_CHARACTERS_MAX)
    .replace(/^-+|-+$/g, "");
  if (label === "") throw new SettingsError(`--subdomain git: ${branch} has no letters or digits`);
  return label;
}
