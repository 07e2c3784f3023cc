// Configuration keys of sources outside of the gateway: a bucket with the configuration, and the secret service.
import { key } from "@platform/kernel/config";
import { z } from "zod";
import { DISCOVERY_FORMS, parseDiscovery } from "./discovery-address.ts";
import { filePath, originUrl, serviceUrl, text, unset, unsetOr, wholeNumber } from "./value.ts";

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
  config_store_bucket: key(
    unset(
      z
        .string()
        .max(1_200)
        .regex(/^(?:s3:\/\/)?[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[^?#]+)?$/, {
          error: "expected the name of a bucket, or s3://BUCKET/KEY",
        }),
    ),
    {
      description:
        "Bucket that holds the configuration in the object config.json, or s3://BUCKET/KEY. It takes precedence over the file, and environment and flags over it; its routes replace those of the file. Read only at startup.",
      env: ["PLATFORM_GATE_CONFIG_STORE_BUCKET", "PLATFORM_CONFIG_STORE_BUCKET"],
    },
  ),
  config_store_endpoint: key(unsetOr(originUrl().default("http://127.0.0.1:9000")), {
    description: "Endpoint of the object storage. Read only at startup.",
    env: ["PLATFORM_GATE_CONFIG_STORE_ENDPOINT", "PLATFORM_CONFIG_STORE_ENDPOINT"],
  }),
  config_store_region: key(unsetOr(text(64).default("us-east-1")), {
    description: "Region of the bucket. Read only at startup.",
    env: ["PLATFORM_GATE_CONFIG_STORE_REGION", "PLATFORM_CONFIG_STORE_REGION"],
  }),
  config_store_access_key: key(unset(text(256)), {
    description: "Access key that may read the object. Read only at startup.",
    env: [
      "PLATFORM_GATE_CONFIG_STORE_ACCESS_KEY",
      "PLATFORM_CONFIG_STORE_ACCESS_KEY_ID",
      "STORE_ACCESS_KEY_ID",
    ],
    secret: true,
  }),
  config_store_secret_key: key(unset(text(256)), {
    description: "Secret of that key. Read only at startup.",
    env: [
      "PLATFORM_GATE_CONFIG_STORE_SECRET_KEY",
      "PLATFORM_CONFIG_STORE_SECRET_ACCESS_KEY",
      "STORE_SECRET_ACCESS_KEY",
    ],
    secret: true,
  }),
  config_store_poll_s: key(unsetOr(wholeNumber(1, 3_600).default(10)), {
    description: "Interval at which the object is looked at. Read only at startup.",
    unit: "s",
  }),
  config_store_ca: key(unset(filePath()), {
    description:
      "File with the authorities (PEM) that the storage's certificate is verified with. Read only at startup.",
    defaultText: "the authorities of the system",
  }),
  discovery: key(
    unset(
      text(2_048).refine((value) => parseDiscovery(value) !== undefined, {
        error: `expected ${DISCOVERY_FORMS}`,
      }),
    ),
    {
      description:
        'Service discovery, which resolves targets `service://NAME`: `dns+srv://DOMAIN[?server=IP:port]` reads the SRV records of `_NAME._tcp.DOMAIN`, an http or https URL returns `{"services": {"NAME": ["URL"]}}`. Read only at startup.',
      allowed: DISCOVERY_FORMS,
      env: ["PLATFORM_GATE_DISCOVERY", "PLATFORM_DISCOVERY"],
    },
  ),
  "gitops.dir": key(unset(filePath()), {
    description:
      "Folder of the git working tree that `POST /api/v1/gitops/webhook` pulls. Read only at startup.",
    defaultText: "the folder of the configuration file",
    env: ["PLATFORM_GATE_GITOPS_DIR"],
  }),
  "gitops.secret": key(unset(text(1_024)), {
    description:
      "Secret of the webhook's signatures; without it the webhook requires the rights of an administrator. Read only at startup.",
    env: ["PLATFORM_GATE_GITOPS_SECRET"],
    secret: true,
  }),
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
