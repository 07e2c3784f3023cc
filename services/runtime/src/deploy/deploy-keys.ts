// Flags of `platform deploy`.
import { z } from "zod";
import { key } from "@platform/kernel/config";

const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
export const DEPLOY_KEYS = {
  target: key(z.enum(["docker", "k8s"]), {
    description: "Container image, or Kubernetes.",
    env: [],
  }),
  namespace: key(z.string().regex(NAME).optional(), {
    description: "Namespace in Kubernetes.",
    env: [],
    defaultText: "that of kubectl",
    allowed: "lower-case letters, digits and -, like team-a",
  }),
  image: key(
    z
      .string()
      .regex(/^[a-z0-9][a-z0-9._:/-]{0,254}$/)
      .optional(),
    {
      description: "Name of the image, with its registry for Kubernetes.",
      env: [],
      defaultText: "NAME:VERSION of package.json",
      allowed: "a name like registry.example.com/notes:1.0.0",
    },
  ),
  database: key(z.enum(["sqlite", "postgres"]).optional(), {
    description:
      "Database in Kubernetes: SQLite on a volume with one replica, or PostgreSQL by a secret with two.",
    env: [],
    defaultText: "sqlite if the service declares a database",
  }),
  dry_run: key(z.boolean().default(false), {
    description: "Print the file and write nothing.",
    env: [],
  }),
  apply: key(z.boolean().default(false), {
    description: "Build the image; for Kubernetes also push it, apply the manifests and wait.",
    env: [],
  }),
};
