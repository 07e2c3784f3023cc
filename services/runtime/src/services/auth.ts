// Table entry of identity.
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { allowBackups, BACKUP_TOKEN } from "./backup.ts";
import { formatCommand, isDiskFull } from "../data-folder/data-folder.ts";
import { writePrivateFile } from "../data-folder/private-file.ts";
import { formatUrl, getAddress, isRunning, type EntryContext, type ServiceEntry } from "./entry.ts";
import { formatConsoleUrl } from "./console.ts";
import { chooseTenant, formatIssuer, REVOCATIONS_TOKEN, trustGateway } from "./identity.ts";
import { describeMail, NOTIFY_TOKEN } from "./notify.ts";

/** Secret of the OAuth client of this command line. */
export const CLI_SECRET = "PLATFORM_CLI_SECRET";
/** Secret of the OAuth client of the web console. */
export const CONSOLE_SECRET = "PLATFORM_CONSOLE_SECRET";
const ADMIN_PASSWORD = "PLATFORM_AUTH_ADMIN_PASSWORD";
const NOTIFY_URL = "PLATFORM_AUTH_PLATFORM_NOTIFY_URL";

/** Identity. */
export const authEntry: ServiceEntry = {
  name: "auth",
  label: "identity",
  main: import.meta.resolve("@platform/auth/main"),
  listeners: [
    {
      name: "http",
      key: "identity_addr",
      env: "PLATFORM_AUTH_ADDR",
      default: "127.0.0.1:8086",
      description: "Listening address of identity.",
    },
  ],
  probes: "http",
  after: ["notify"],
  backup: { listener: "http" },
  credentials: [CLI_SECRET, CONSOLE_SECRET, REVOCATIONS_TOKEN, BACKUP_TOKEN],
  uses: [NOTIFY_TOKEN],
  // The password of an existing administrator cannot be generated again.
  firstCredentials: { names: [ADMIN_PASSWORD], unless: "auth/auth.db" },
  // Links and cookies of its pages depend on the host, so the path is not changed.
  routes: [
    { prefix: "/", subdomain: "identity", stripPrefix: false, open: true, listener: "http" },
  ],
  prepare: writeBootstrapFile,
  configure: (context) => ({
    args: [],
    env: {
      PLATFORM_AUTH_BOOTSTRAP_FILE: getBootstrapPath(context),
      PLATFORM_AUTH_ADDR: formatAddress(getAddress(context, "identity_addr")),
      PLATFORM_AUTH_DATA_DIR: join(context.dataDir, "auth"),
      ...allowBackups(context),
      PLATFORM_AUTH_REVOCATIONS_TOKEN: context.credentials[REVOCATIONS_TOKEN] ?? "",
      ...chooseDefaults(context),
      ...trustGateway("auth", ["identity_addr"], context, process.env),
      ...sendMail(context),
    },
  }),
  describe: (context) => {
    const url = formatIssuer(context, process.env);
    const docs = `docs ${formatUrl(getAddress(context, "identity_addr"))}/api/docs`;
    return `account ${url}/account · ${describeSignIn(context) ?? docs}`;
  },
  trials: (context) => [
    { command: formatCommand(context.dataDir, "status"), meaning: "state of all services" },
    {
      command: formatCommand(context.dataDir, `app add notes${listRights(context)}`),
      meaning: "credentials of an application",
    },
  ],
};

// Rights at services that run.
function listRights(context: EntryContext): string {
  const bucket = isRunning("vault", context) ? " --bucket notes" : "";
  return isRunning("pulse", context) ? `${bucket} --topic 'notes.#'` : bucket;
}

// The operator's settings take precedence.
function chooseDefaults(context: EntryContext): Record<string, string> {
  const chosen = (name: string): boolean => (process.env[name] ?? "") !== "";
  return {
    PLATFORM_AUTH_DEFAULT_TENANT: chooseTenant(process.env),
    ...(chosen("PLATFORM_AUTH_PUBLIC_URL") || context.domain === undefined
      ? {}
      : { PLATFORM_AUTH_PUBLIC_URL: formatIssuer(context, process.env) }),
  };
}

function getAdminName(): string {
  return process.env["PLATFORM_AUTH_ADMIN_USER"] || "root";
}

/** The first administrator's way to sign in; undefined if its password is not one of the credentials. */
export function describeSignIn({
  credentials,
  credentialsShown,
}: EntryContext): string | undefined {
  if ((credentials[ADMIN_PASSWORD] ?? "") === "") return undefined;
  return `sign in as ${getAdminName()} (${ADMIN_PASSWORD} in ${credentialsShown})`;
}

// A console that does not run gets no client.
function describeConsole(context: EntryContext) {
  if (!isRunning("gate", context)) return {};
  return {
    console: {
      client_secret: context.credentials[CONSOLE_SECRET],
      url: formatConsoleUrl(context),
    },
  };
}

function getBootstrapPath(context: EntryContext): string {
  return join(context.dataDir, "auth", "bootstrap.json");
}

async function writeBootstrapFile(context: EntryContext): Promise<string[]> {
  const password = context.credentials[ADMIN_PASSWORD] ?? "";
  await mkdir(join(context.dataDir, "auth"), { recursive: true, mode: 0o700 });
  const path = getBootstrapPath(context);
  try {
    writePrivateFile(path, {
      client_secret: context.credentials[CLI_SECRET],
      ...describeConsole(context),
      ...(password === "" ? {} : { administrator: { username: getAdminName(), password } }),
    });
  } catch (error) {
    if (!isDiskFull(error) || !existsSync(path)) throw error;
  }
  return [];
}

// A mail service that the operator chose takes precedence.
function sendMail(context: EntryContext): Record<string, string> {
  if (process.env[NOTIFY_URL] !== undefined) return {};
  return describeMail(context, NOTIFY_URL, "PLATFORM_AUTH_NOTIFY_TOKEN");
}
