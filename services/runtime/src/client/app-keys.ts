// Flags of the commands for applications.
import { z } from "zod";
import { key } from "@platform/kernel/config";

/** Flags of `platform app add`. */
export const APP_KEYS = {
  redirect: key(
    z
      .array(z.url({ protocol: /^https?$/ }))
      .max(20)
      .default([]),
    {
      description: "URL to which users return after they have signed in; may be repeated.",
      env: [],
    },
  ),
  bucket: key(z.string().min(3).max(63).optional(), {
    description: "Bucket that the application may read and write; created if it is missing.",
    env: [],
  }),
  topic: key(z.array(z.string().min(1).max(249)).max(50).default([]), {
    description:
      "Topics that it may publish and subscribe: a name, or a pattern in which * is one level and # any number of levels, so that orders.# includes orders and orders.* does not; may be repeated.",
    env: [],
  }),
  mail: key(z.boolean().default(false), {
    description: "Lets the application send mail.",
    env: [],
  }),
  out: key(z.string().min(1).optional(), {
    description:
      "Write the environment file to FILE, readable only by its owner, instead of printing it.",
    env: [],
    placeholder: "FILE",
  }),
};

/** Flags of `platform app allow`. */
export const ALLOW_KEYS = {
  role: key(z.array(z.string().min(1).max(64)).max(49).default([]), {
    description: "Role of its users that the application may act with; may be repeated.",
    env: [],
  }),
};
