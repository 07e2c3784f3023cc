// The code blocks of a page of the guide, as a reader copies them.
import { readFileSync } from "node:fs";

/** A fenced block. */
export interface CodeBlock {
  language: string;
  text: string;
}

/** Shell blocks that no test types, by page: a text that only they contain, and the reason. */
export const UNTYPED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "editor.md": { "code --install-extension": "requires Visual Studio Code" },
  "identity.md": { PLATFORM_AUTH_BRAND_NAME: "starts the service of the first block again" },
  "messaging.md": {
    '"message_id":"…"': "an acknowledgement of a message that a reader has",
    s3_bucket: "requires a bucket of a store",
  },
  "middleware.md": {
    "npm install assemblyscript": "installs a compiler from the registry",
    "npx asc": "requires that compiler",
  },
  "mqtt.md": { "messaging.example": "requires a name, and a certificate for it" },
  "operate.md": { "docker build": "requires Docker" },
  "several-nodes.md": {
    "node bin/platform-auth.js": "requires PostgreSQL on another machine",
    "node bin/platform-gate.js": "requires Redis on another machine",
    PLATFORM_GATE_CONSOLE_ADDR: "variables, not a command",
  },
};

/** Reads the fenced blocks of a page in `docs/guide`, in order. */
export function readBlocks(name: string): CodeBlock[] {
  const page = readFileSync(new URL(`../../docs/guide/${name}`, import.meta.url), "utf8");
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", text = ""]) => ({
    language,
    text,
  }));
}

/** Reads the shell blocks of a page, without those of {@link UNTYPED}. */
export function readCommands(name: string): string[] {
  const untyped = Object.keys(UNTYPED[name] ?? {});
  return readBlocks(name)
    .filter(
      ({ language, text }) => language === "sh" && !untyped.some((part) => text.includes(part)),
    )
    .map(({ text }) => text);
}
