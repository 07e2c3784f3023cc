// Options of the commands `certificates`.
import { type ConfigOf, key } from "@platform/kernel/config";
import { z } from "zod";
import { filePath, originUrl, unset } from "./value.ts";

/** Options of `platform-gate certificates list`, which the other commands have, too. */
export const certificateOptions = {
  url: key(originUrl().default("http://127.0.0.1:8080"), {
    description: "Origin of the running gateway.",
    env: ["PLATFORM_GATE_URL"],
  }),
  token: key(z.string().min(1).optional(), {
    description: "The operator token, or a token with the scope gate:admin (list: gate:read).",
    secret: true,
    env: ["PLATFORM_GATE_AUTH_TOKEN"],
  }),
  ca: key(unset(filePath()), {
    description: "File with the authorities (PEM) that the gateway's certificate is verified with.",
    defaultText: "the authorities of the system",
    env: [],
  }),
};

/** Options of `platform-gate certificates revoke`. */
export const revokeOptions = {
  ...certificateOptions,
  reason: key(
    z
      .enum([
        "unspecified",
        "key_compromise",
        "affiliation_changed",
        "superseded",
        "cessation_of_operation",
      ])
      .default("unspecified"),
    { description: "Reason of the revocation.", env: [] },
  ),
};

/** The options as read. */
export type CertificateOptions = ConfigOf<typeof certificateOptions>;
