// The project in the working directory as a service of `platform up`, with an application's credentials of its own.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { ApiError } from "../client/api-client.ts";
import { createApplication, removeApplication } from "../client/application.ts";
import type { Target } from "../client/target.ts";
import { formatFolder } from "../data-folder/data-folder.ts";
import { replaceFileSync } from "@platform/kernel/files";
import { formatVariables, parseVariables } from "../data-folder/private-file.ts";
import type { RunningState } from "../data-folder/running-file.ts";
import type { Project } from "../project/project.ts";
import {
  formatHost,
  formatLocalHost,
  formatUrl,
  getAddress,
  isRunning,
  type EntryContext,
  type ServiceEntry,
} from "../services/entry.ts";
import { formatIssuer, wireIdentity } from "../services/identity.ts";

/** Configuration key of the project's address. */
export const PROJECT_KEY = "project_addr";
/** Default address of the project: the port that `platform init` writes. */
export const PROJECT_ADDRESS = "127.0.0.1:3000";

/** Path of the route that finishes sign-ins. */
const CALLBACK = "/callback";

/** Creates the entry. `readState` returns the state of the platform's services, of which those in `after` run. */
export function createProjectEntry(project: Project, readState: () => RunningState): ServiceEntry {
  const { name, file } = project;
  let variables: Readonly<Record<string, string>> = {};
  return {
    name,
    label: name,
    main: new URL("../watch/supervised.ts", import.meta.url).href,
    listeners: [
      {
        name: "http",
        key: PROJECT_KEY,
        env: "PLATFORM_PROJECT_ADDR",
        default: PROJECT_ADDRESS,
        description: "Listening address of the project in the working directory.",
      },
    ],
    probes: "http",
    credentials: [],
    // A host of its own: pages of one application cannot act for users of another.
    routes: [{ prefix: "/", subdomain: name, stripPrefix: false, open: true, listener: "http" }],
    after: ["auth", "vault", "pulse", "notify"],
    needsReady: true,
    prepare: async (context) => {
      const prepared = await prepareCredentials(project, context, readState);
      ({ variables } = prepared);
      return prepared.notes;
    },
    configure: (context) => {
      const { host, port } = getAddress(context, PROJECT_KEY);
      return {
        args: [file],
        env: {
          ...variables,
          ...describeAddresses(readState()),
          ...wireIdentity("service", context, process.env),
          PLATFORM_SERVICE_NAME: name,
          PLATFORM_SERVICE_PORT: String(port),
          ...(host === undefined ? {} : { PLATFORM_SERVICE_HOST: host }),
          PLATFORM_DATA_DIR: context.dataDir,
        },
      };
    },
    describe: (context) => {
      const docs = `docs ${formatUrl(getAddress(context, PROJECT_KEY))}/api/docs`;
      const path = formatFolder(getPath(context, name));
      const keys = Object.keys(variables).length === 0 ? "" : ` · credentials ${path}`;
      const gateway = isRunning("gate", context) ? ` · ${formatOrigin(project, context)}` : "";
      return `reloaded on change${gateway} · ${docs}${keys}`;
    },
    trials: (context) => [
      { command: `curl ${formatLocalHost(getAddress(context, PROJECT_KEY))}`, meaning: file },
    ],
  };
}

interface Prepared {
  variables: Readonly<Record<string, string>>;
  notes: string[];
}

// Stored credentials are used as long as identity returns users to the same address.
async function prepareCredentials(
  project: Project,
  context: EntryContext,
  readState: () => RunningState,
): Promise<Prepared> {
  const { name } = project;
  if (!isRunning("auth", context)) {
    return { variables: {}, notes: [`${name} has no credentials: identity does not run`] };
  }
  const path = getPath(context, name);
  const redirects = [
    `${formatOrigin(project, context)}${CALLBACK}`,
    `http://localhost:${getAddress(context, PROJECT_KEY).port}${CALLBACK}`,
  ];
  const target: Target = {
    dataDir: context.dataDir,
    state: readState(),
    credentials: new Map(Object.entries(context.credentials)),
  };
  if (existsSync(path)) {
    const stored = parseVariables(readFileSync(path, "utf8"));
    const isCurrent =
      stored["OIDC_REDIRECT_URL"] === redirects[0] &&
      stored["OIDC_ISSUER"] === formatIssuer(context, process.env);
    if (isCurrent) return { variables: stored, notes: [] };
    await removeApplication(target, name);
  }
  try {
    const created = await createApplication(target, {
      name,
      redirects: isRunning("gate", context) ? redirects : redirects.slice(1),
      bucket: isRunning("vault", context) ? `app-${name}` : undefined,
      topics: isRunning("pulse", context) ? [name, `${name}.#`] : [],
      mail: isRunning("notify", context),
    });
    mkdirSync(join(context.dataDir, "applications"), { recursive: true, mode: 0o700 });
    replaceFileSync(path, formatVariables(created));
    return { variables: Object.fromEntries(created), notes: [] };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // The application of someone else is not replaced.
    return { variables: {}, notes: [`${name} has no credentials: ${error.message}`] };
  }
}

// Ports may have changed since the credentials were stored.
function describeAddresses({ services }: RunningState): Record<string, string> {
  const variables = { pulse: "MESSAGING_URL", notify: "MAIL_URL", vault: "AWS_ENDPOINT_URL_S3" };
  return Object.fromEntries(
    Object.entries(variables).flatMap(([service, variable]) => {
      const url = services.find(({ name }) => name === service)?.url ?? "";
      return url === "" ? [] : [[variable, url]];
    }),
  );
}

function formatOrigin({ name }: Project, context: EntryContext): string {
  if (!isRunning("gate", context)) {
    return `http://${formatAddress({ ...getAddress(context, PROJECT_KEY), host: "localhost" })}`;
  }
  const host = formatHost(name, context);
  if (context.domain !== undefined) return `https://${host}`;
  return `http://${host}:${getAddress(context, "gateway_addr").port}`;
}

function getPath(context: EntryContext, name: string): string {
  return join(context.dataDir, "applications", `${name}.env`);
}
