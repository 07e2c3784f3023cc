// Settings of the platform's services.
import { nameProgram } from "@platform/kernel/config";
import { declared } from "../service/declared.ts";
import type { Settings } from "../service/settings.ts";

/** Environment variables by setting. */
const VARIABLES = {
  oidc_issuer: "OIDC_ISSUER",
  oidc_client_id: "OIDC_CLIENT_ID",
  oidc_client_secret: "OIDC_CLIENT_SECRET",
  oidc_redirect_url: "OIDC_REDIRECT_URL",
  messaging_url: "MESSAGING_URL",
  mail_url: "MAIL_URL",
  s3_endpoint: "AWS_ENDPOINT_URL_S3",
  s3_region: "AWS_REGION",
  s3_access_key: "AWS_ACCESS_KEY_ID",
  s3_secret_key: "AWS_SECRET_ACCESS_KEY",
  s3_bucket: "S3_BUCKET",
} as const satisfies Partial<Record<keyof Settings, string>>;

type Name = keyof typeof VARIABLES;

/** A part of the platform that this service has no settings for. */
class NotConfiguredError extends Error {
  constructor(part: string, variables: readonly string[]) {
    const program = nameProgram("platform");
    const verb = variables.length === 1 ? "is" : "are";
    super(
      `${part}: ${variables.join(", ")} ${verb} not set; start the service with "${program} up", or with the variables that "${program} app add NAME" prints`,
    );
    this.name = "NotConfiguredError";
  }
}

/** Reads the settings of a part, such as `messages`. Throws a NotConfiguredError that names all missing variables. */
export function requireSettings<Required extends Name>(
  part: string,
  names: readonly Required[],
): Record<Required, string> {
  const { settings } = declared;
  const missing = names.filter((name) => settings[name] === undefined);
  if (missing.length > 0) {
    throw new NotConfiguredError(
      part,
      missing.map((name) => VARIABLES[name]),
    );
  }
  return Object.fromEntries(names.map((name) => [name, settings[name]])) as never;
}
