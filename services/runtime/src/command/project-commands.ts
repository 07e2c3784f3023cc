// Flags of `platform project …`.
import { z } from "zod";
import { key } from "@platform/kernel/config";
import { DATA_KEY } from "./data-key.ts";

/** Commands on the projects of a running platform, as the command line defines them. */
export const PROJECT_COMMANDS = {
  "project list": {
    summary: "List the projects of the running platform.",
    standalone: true,
    options: {
      data: DATA_KEY,
      json: key(z.boolean().default(false), {
        description: "Print one JSON document a line.",
        env: [],
      }),
    },
  },
  "project add": {
    summary: "Add a project to the running platform; it starts with the platform from now on.",
    standalone: true,
    arguments: ["folder?"],
    options: {
      data: DATA_KEY,
      environment_file: key(z.string().min(1).max(4_096).optional(), {
        description: "File with variables of its process.",
        env: [],
        placeholder: "FILE",
      }),
    },
    examples: [
      ["platform project add ../shop --environment-file ../shop/.env", "with its own variables"],
    ],
  },
  "project remove": {
    summary: "Stop a project, forget it, and revoke its credentials. Its databases are kept.",
    standalone: true,
    arguments: ["name"],
    options: {
      data: DATA_KEY,
      data_too: key(z.boolean().default(false), {
        description: "Delete its databases as well.",
        env: [],
      }),
    },
  },
  "project env": {
    summary: "List the variables of a project's process, and who sets each.",
    standalone: true,
    arguments: ["name"],
    options: { data: DATA_KEY },
  },
  "project set": {
    summary: "Set a variable of a project, from its next start; its value is read from the input.",
    standalone: true,
    arguments: ["name", "variable"],
    options: {
      data: DATA_KEY,
      plain: key(z.boolean().default(false), {
        description: "It is no secret: it is stored as it is, and can be shown.",
        env: [],
      }),
    },
    examples: [['printf %s "$KEY" | platform project set shop API_KEY', "a secret"]],
  },
  "project unset": {
    summary: "Remove a variable that was set for a project.",
    standalone: true,
    arguments: ["name", "variable"],
    options: { data: DATA_KEY },
  },
  "project restart": {
    summary: "Restart a project, also one that could not be started.",
    standalone: true,
    arguments: ["name"],
    options: { data: DATA_KEY },
  },
} as const;
