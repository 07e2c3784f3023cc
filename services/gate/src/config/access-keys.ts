// Configuration keys of access: token binding, browser sign-in, policies and their state on disk.
import { key } from "@platform/kernel/config";
import * as z from "zod";
import { filePath, text, unset, unsetOr } from "./value.ts";

/** Keys of the configuration. */
export const accessKeys = {
  strict_token_binding: key(z.boolean().default(false), {
    description:
      "Refuse routes whose `auth` checks neither issuer nor audience of a token, instead of logging a warning.",
  }),
  cookie_keys: key(
    unset(
      z
        .array(z.string().regex(/^[A-Za-z0-9_-]{43}$/, { error: "expected 32 bytes in base64url" }))
        .max(8),
    ),
    {
      description:
        "Keys of the encrypted session cookies of browser sign-in: the first encrypts, all of them decrypt. Gateways behind one address share them. Read only at startup.",
      defaultText: "a generated key in data_dir",
      secret: true,
    },
  ),
  cluster: key(unsetOr(text(256).default("default")), {
    description: "Name of this cluster, for conditions in policies.",
    env: ["PLATFORM_CLUSTER"],
  }),
  region: key(unsetOr(text(256).default("us-east")), {
    description: "Name of this region, for conditions in policies.",
    env: ["PLATFORM_REGION"],
  }),
  data_dir: key(unset(filePath()), {
    description:
      "Folder of the state that the gateway writes: API keys, revoked users, policy. Read only at startup.",
    defaultText: "the name of the configuration file with .state appended",
  }),
};
