// Flags of `platform credentials …` and `platform keys …`.
import { z } from "zod";
import { key } from "@platform/kernel/config";
import { OVERLAP_S_MAX } from "../services/rotatable.ts";
import { DATA_KEY } from "./data-key.ts";

/** Commands on generated credentials and signing keys, as the command line defines them. */
export const CREDENTIAL_COMMANDS = {
  "credentials list": {
    summary: "List the generated credentials: what each opens, who has it, its age. Never a value.",
    standalone: true,
    options: {
      data: DATA_KEY,
      json: key(z.boolean().default(false), {
        description: "Print one JSON document a line.",
        env: [],
      }),
    },
  },
  "credentials rotate": {
    summary:
      "Replace a credential. Programs of the platform follow while they run; the former value is accepted for a while.",
    standalone: true,
    arguments: ["name"],
    options: {
      data: DATA_KEY,
      overlap_s: key(z.int().min(0).max(OVERLAP_S_MAX).default(86_400), {
        description: "Time for which the former value is accepted; 0 ends it at once.",
        unit: "s",
        env: [],
      }),
    },
    examples: [
      ["platform credentials rotate PLATFORM_PULSE_TOKEN", "a day for clients to change to it"],
      [
        "platform credentials rotate PLATFORM_PULSE_TOKEN --overlap-s 0",
        "after a leak: the former value ends when the services have followed",
      ],
    ],
  },
  "keys rotate": {
    summary:
      "Replace the key with which identity signs tokens, and wait until all services have it.",
    standalone: true,
    options: {
      data: DATA_KEY,
      now: key(z.boolean().default(false), {
        description:
          "Sign with the new key at once and revoke the former one: all tokens that it has signed end.",
        env: [],
      }),
    },
  },
} as const;
