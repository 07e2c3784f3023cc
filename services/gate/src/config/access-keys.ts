// Configuration keys of access: token binding, browser sign-in, policies and their state on disk.
import { key, networkSchema } from "@platform/kernel/config";
import { z } from "zod";
import { filePath, text, unset, unsetOr } from "./value.ts";

const LIST_MAX = 64;
/** Loopback and private use (RFC 1918); not the link-local addresses of metadata services. */
const PRIVATE_NETWORKS_DEFAULT = [
  "127.0.0.0/8",
  "::1",
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
];

const variablePattern = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,254}\*?$/, {
  error: 'expected the name of a variable, with "*" at the end for any rest',
});

/** Keys of the configuration. */
export const accessKeys = {
  files_roots: key(unset(z.array(filePath()).max(LIST_MAX)), {
    description:
      "Folders of the files that routes with `confined` may name: users with `gate:admin` can set no others. Links that lead out are refused whenever a file is opened. They must not contain the configuration or data_dir.",
    defaultText: "public next to the configuration",
  }),
  secret_variables: key(
    unsetOr(z.array(variablePattern).max(LIST_MAX).default(["PLATFORM_GATE_ROUTE_*"])),
    {
      description:
        "Environment variables that routes with `confined` may name; `*` at the end stands for any rest.",
    },
  ),
  private_networks: key(
    unsetOr(z.array(networkSchema()).max(1024).default(PRIVATE_NETWORKS_DEFAULT)),
    {
      description:
        "Networks without public addresses that routes with `confined` may reach, beside all public addresses.",
    },
  ),
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
        "Keys of the encrypted session cookies of browser sign-in: the first encrypts, all of them decrypt. Gateways behind one address share them: they also derive the keys of TLS session tickets, and of shared certificates. Read only at startup.",
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
