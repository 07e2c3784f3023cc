// Configuration keys of automatic certificates (ACME).
import { ADDRESS_FORMS, addressSchema, isLoopbackAddress, key } from "@platform/kernel/config";
import { z } from "zod";
import { parseNameServer } from "./discovery-address.ts";
import { parseTsigKey } from "./tsig-key.ts";
import { serverName } from "./server-name.ts";
import { filePath, serviceUrl, text, unset, unsetOr } from "./value.ts";

/** The production directory of Let's Encrypt. */
const DIRECTORY_DEFAULT = "https://acme-v02.api.letsencrypt.org/directory";
const DOMAINS_MAX = 100;

const challengeSchema = z.enum(["tls-alpn-01", "http-01", "dns-01"]);

const dnsSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("rfc2136"),
    server: text(64)
      .refine((server) => parseNameServer(server) !== undefined, {
        error: 'expected an address such as "192.0.2.53" or "192.0.2.53:53"',
      })
      .meta({ description: "primary server of the zone" }),
    zone: serverName().meta({ description: "zone of the names" }),
    tsig_key: unset(
      text(1_024).refine((key) => parseTsigKey(key) !== undefined, {
        error: "expected algorithm:name:secret, such as hmac-sha256:acme:BASE64",
      }),
    ).meta({ description: "key that signs the updates, as algorithm:name:secret" }),
  }),
  z.strictObject({
    type: z.literal("hook"),
    command: z
      .array(text(1_024))
      .min(1)
      .max(32)
      .meta({ description: "program and its first arguments" }),
  }),
]);

/** Keys of the configuration. */
export const acmeKeys = {
  auto_tls: key(unsetOr(z.boolean().default(false)), {
    description:
      "Obtain and renew certificates through ACME. Enabling it accepts the terms of service of the certificate authority. Without addr the gateway then listens on :443. Read only at startup.",
    env: ["PLATFORM_GATE_AUTO_TLS", "PLATFORM_AUTO_TLS"],
  }),
  auto_tls_hosts: key(unset(z.boolean()), {
    description:
      "Obtain certificates for the hosts of routes, in addition to auto_tls_domain. Read only at startup.",
    defaultText: "true without auto_tls_domain",
  }),
  certificates_dir: key(unset(filePath()), {
    description:
      "Folder into which each certificate of auto_tls is written as NAME.pem, chain and key together, for other programs of this machine: a file is replaced as a whole, at every renewal. `*.example.org` is `_.example.org.pem`. Read only at startup.",
  }),
  auto_tls_domain: key(unsetOr(z.array(serverName()).max(DOMAINS_MAX).default([])), {
    description: "Names that have a certificate each. Read only at startup.",
    env: ["PLATFORM_GATE_AUTO_TLS_DOMAIN", "PLATFORM_AUTO_TLS_DOMAIN"],
    defaultText: "the hosts of the routes",
  }),
  http_addr: key(unset(addressSchema()), {
    description:
      "Listen address for plain HTTP: it answers challenges, and redirects everything else to https. Read only at startup.",
    allowed: `an address such as ${ADDRESS_FORMS}`,
    defaultText: ":80 with auto_tls; otherwise there is none",
  }),
  local_addr: key(
    unset(
      addressSchema().refine(isLoopbackAddress, {
        error: "expected an address of the loopback interface, such as 127.0.0.1:8079",
      }),
    ),
    {
      description:
        "Listen address for programs on this machine, without TLS: all routes and the gateway's own API, for which a certificate of a public name is of no use. Without TLS, addr serves them, and there is no such listener. Read only at startup.",
      allowed: `an address such as "127.0.0.1:8079"`,
    },
  ),
  acme_directory_url: key(unsetOr(serviceUrl().default(DIRECTORY_DEFAULT)), {
    description: "Directory of the certificate authority. Read only at startup.",
    env: ["PLATFORM_GATE_ACME_DIRECTORY_URL", "PLATFORM_ACME_DIRECTORY_URL"],
  }),
  acme_email: key(unset(z.email().max(254)), {
    description: "Contact of the account. Read only at startup.",
    env: ["PLATFORM_GATE_ACME_EMAIL", "PLATFORM_ACME_EMAIL"],
  }),
  acme_ca: key(unset(filePath()), {
    description:
      "File with the authorities (PEM) that the directory's own certificate is verified with. Read only at startup.",
    defaultText: "the authorities of the system",
    env: ["PLATFORM_GATE_ACME_CA", "PLATFORM_ACME_CA"],
  }),
  acme_eab_kid: key(unset(text(1_024)), {
    description: "ID of the key that binds the account to one at the authority (EAB).",
  }),
  acme_eab_hmac_key: key(
    unset(z.string().regex(/^[A-Za-z0-9_-]{16,1024}=*$/, { error: "expected base64url" })),
    { description: "That key, in base64url.", secret: true },
  ),
  acme_profile: key(unset(text(64)), {
    description: "Profile of the certificates, if the directory has profiles.",
  }),
  acme_key_type: key(unsetOr(z.enum(["p256", "p384", "rsa2048"]).default("p256")), {
    description: "Kind of the keys of certificates. Each certificate has a new key.",
  }),
  acme_dns: key(unset(dnsSchema), {
    description:
      'Way to set DNS records of challenges, which wildcards require: dynamic updates (`{type: "rfc2136", server, zone, tsig_key}`), or a program (`{type: "hook", command}`) that is called with `present` or `cleanup`, the name and the value of a TXT record, without environment variables but PATH, for at most 60 s. Read only at startup.',
    env: [],
    flag: false,
    secret: true,
  }),
  acme_challenges: key(
    unsetOr(z.array(challengeSchema).min(1).default(["tls-alpn-01", "http-01"])),
    {
      description:
        "Proofs of the control of a name, the preferred one first; after a failure the next one is tried. dns-01 requires acme_dns, and is the one of wildcards.",
    },
  ),
  auto_tls_ask_url: key(unset(serviceUrl()), {
    description:
      "Service that is asked, with `?domain=NAME`, whether an unknown name of a handshake may have a certificate: status 200 is yes. The handshake fails immediately, and the certificate is obtained in the background. At most 10 new names an hour, 1 000 in all. Read only at startup.",
  }),
};
