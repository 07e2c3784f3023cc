// Configuration keys of a gateway that faces the internet: certificates by name, and certificates of clients.
import { key } from "@platform/kernel/config";
import { z } from "zod";
import { filePath, unset, unsetOr } from "./value.ts";
import { serverName } from "./server-name.ts";

/** Certificates of one listener, and names of one certificate. */
const CERTIFICATES_MAX = 1_000;
const NAMES_MAX = 100;

const certificateSchema = z.strictObject({
  cert: filePath().meta({ description: "file with the certificate chain (PEM)" }),
  key: filePath().meta({ description: "file with its unencrypted private key (PEM)" }),
  names: unset(z.array(serverName()).min(1).max(NAMES_MAX)).meta({
    description: "host names that it is used for; default: those that it contains",
  }),
});

/** Keys of the configuration. */
export const edgeKeys = {
  certificates: key(unsetOr(z.array(certificateSchema).max(CERTIFICATES_MAX).default([])), {
    description:
      "Certificates by name: `[{cert, key, names}]`. A client gets that of the name it sends: the exact name first, then a wildcard of one label (`*.example.org`), then tls_cert; without any of them the handshake fails with `unrecognized_name`. With them the listener accepts TLS only. Changed files are loaded within two seconds.",
    env: [],
    flag: false,
    secret: false,
  }),
  client_certificates: key(
    unset(
      z.strictObject({
        mode: z.enum(["request", "require"]).meta({
          description:
            "`require` refuses connections without a certificate, `request` leaves it to the routes",
        }),
        ca: filePath().meta({ description: "file with the authorities (PEM)" }),
      }),
    ),
    {
      description:
        "Certificates of clients: `{mode, ca}`. They are verified with the authorities in `ca` only, and forwarded in the field Client-Cert (RFC 9440), which clients cannot set. Requires TLS. Its presence and mode are read only at startup.",
      env: [],
      flag: false,
      secret: false,
    },
  ),
};
