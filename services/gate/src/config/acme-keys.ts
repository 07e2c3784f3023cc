// Configuration keys of automatic certificates (ACME).
import { ADDRESS_FORMS, addressSchema, key } from "@platform/kernel/config";
import { z } from "zod";
import { serverName } from "./server-name.ts";
import { filePath, serviceUrl, text, unset, unsetOr } from "./value.ts";

/** The production directory of Let's Encrypt. */
const DIRECTORY_DEFAULT = "https://acme-v02.api.letsencrypt.org/directory";
const DOMAINS_MAX = 100;

const challengeSchema = z.enum(["tls-alpn-01", "http-01"]);

/** Keys of the configuration. */
export const acmeKeys = {
  auto_tls: key(unsetOr(z.boolean().default(false)), {
    description:
      "Obtain and renew certificates through ACME. Enabling it accepts the terms of service of the certificate authority. Without addr the gateway then listens on :443. Read only at startup.",
    env: ["PLATFORM_GATE_AUTO_TLS", "PLATFORM_AUTO_TLS"],
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
  acme_challenges: key(
    unsetOr(z.array(challengeSchema).min(1).default(["tls-alpn-01", "http-01"])),
    {
      description:
        "Proofs of the control of a name, the preferred one first; after a failure the next one is tried. On Bun there is http-01 only.",
    },
  ),
  auto_tls_ask_url: key(unset(serviceUrl()), {
    description:
      "Service that is asked, with `?domain=NAME`, whether an unknown name of a handshake may have a certificate: status 200 is yes. The handshake fails immediately, and the certificate is obtained in the background. At most 10 new names an hour, 1 000 in all. Read only at startup.",
  }),
};
