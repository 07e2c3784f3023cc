// The secret service of a configuration.
import type { Logger } from "@platform/kernel/log";
import { readAuthorities } from "../config/authorities.ts";
import type { GateConfig } from "../config/document.ts";
import { SecretSource } from "../source/secret-source.ts";

/** Reads certificates and JWT secret; undefined without `secret_url`. Throws if neither service nor copy is usable. */
export async function openSecrets(
  config: GateConfig,
  folder: string,
  log: Logger,
): Promise<SecretSource | undefined> {
  const { secret_url: url, secret_api_key: apiKey, secret_tenant_id: tenant } = config;
  if (url === undefined || apiKey === undefined) return undefined;
  const source = new SecretSource({
    url,
    apiKey,
    namespace: tenant === "default" ? undefined : tenant,
    ca: config.secret_ca === undefined ? undefined : readAuthorities(config.secret_ca, "secret_ca"),
    mount: config.secret_mount,
    certificatesPath: config.secret_certificates_path,
    jwtPath: config.secret_jwt_path,
    refreshMs: config.secret_refresh_s * 1_000,
    folder,
    isEphemeral: config.ephemeral,
    log,
  });
  await source.load();
  if (config.jwt_secret !== undefined && source.listJwtSecrets().length > 0) {
    log.warn("jwt_secret of the configuration is used, not that of the secret service", {});
  }
  return source;
}
