// Texts of `platform up` for the console: public addresses, and commands for a terminal in its working directory.
import type { RuntimeHints } from "../api/service-routes.ts";
import { formatCommand } from "../data-folder/data-folder.ts";
import { formatHost, isRunning, type EntryContext } from "../services/entry.ts";
import { formatIssuer } from "../services/identity.ts";
import { formatFirstApp } from "./first-app.ts";

/** Describes the running platform. */
export function describeHints(context: EntryContext): RuntimeHints {
  const { domain, dataDir } = context;
  const hasGateway = domain !== undefined && isRunning("gate", context);
  return {
    credentials: context.credentialsShown,
    share: formatCommand(dataDir, "share 3000"),
    app: formatFirstApp(),
    issuer: isRunning("auth", context) ? formatIssuer(context, process.env) : null,
    gateway: hasGateway ? `https://${domain}` : null,
    s3:
      hasGateway && isRunning("vault", context) ? `https://${formatHost("vault", context)}` : null,
  };
}
