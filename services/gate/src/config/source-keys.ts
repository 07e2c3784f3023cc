// Configuration keys of sources: the secret service.
import { key } from "@platform/kernel/config";
import { z } from "zod";
import { filePath, serviceUrl, text, unset, unsetOr, wholeNumber } from "./value.ts";

/** The path of a secret, or of a folder of secrets. */
const secretPath = (initial: string) =>
  unsetOr(
    z
      .string()
      .max(512)
      .regex(/^[^/?#]+(?:\/[^/?#]+)*$/, { error: "expected a path such as gateway/certificates" })
      .default(initial),
  );

/** Keys of the configuration. */
export const sourceKeys = {
  secret_url: key(unset(serviceUrl()), {
    description:
      "Secret service (KV v2 of OpenBao or Vault) that holds certificates and the JWT secret. Configured values take precedence over it. Requires secret_api_key. Read only at startup.",
    env: ["PLATFORM_GATE_SECRET_URL", "PLATFORM_SECRET_URL"],
  }),
  secret_api_key: key(unset(text()), {
    description: "Token for the secret service. Read only at startup.",
    env: ["PLATFORM_GATE_SECRET_API_KEY", "PLATFORM_SECRET_API_KEY"],
    secret: true,
  }),
  secret_tenant_id: key(unsetOr(text(256).default("default")), {
    description:
      "Tenant of the secrets, sent as namespace; `default` is the root namespace. Read only at startup.",
    env: ["PLATFORM_GATE_SECRET_TENANT_ID", "PLATFORM_SECRET_TENANT_ID"],
    secret: false,
  }),
  secret_mount: key(secretPath("secret"), {
    description: "Mount of the KV engine. Read only at startup.",
    secret: false,
  }),
  secret_certificates_path: key(secretPath("gateway/certificates"), {
    description:
      "Folder of the certificates, each with the fields `cert` and `key`, `certificate` and `private_key`, or `tls.crt` and `tls.key`. Read only at startup.",
    secret: false,
  }),
  secret_jwt_path: key(secretPath("gateway/jwt"), {
    description:
      "Secret with the key of HS256 tokens in the field `secret`. After a change the previous one verifies for 300 s, too. Read only at startup.",
    secret: false,
  }),
  secret_ca: key(unset(filePath()), {
    description:
      "File with the authorities (PEM) that the secret service's certificate is verified with. Read only at startup.",
    defaultText: "the authorities of the system",
    secret: false,
  }),
  secret_refresh_s: key(unsetOr(wholeNumber(1, 86_400).default(60)), {
    description: "Interval at which secrets are read again. Read only at startup.",
    unit: "s",
    secret: false,
  }),
};
