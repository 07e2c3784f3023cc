// Bun's S3 client, exercised by ./bun-exercise.ts.
import { fileURLToPath } from "node:url";
import { readVersionOf, runProgram, type RealS3Client } from "./client.ts";

const BUN = fileURLToPath(
  new URL("../../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url),
);
const SCRIPT = fileURLToPath(new URL("bun-exercise.ts", import.meta.url));

/** Bun's built-in client. */
export const bun: RealS3Client = {
  name: "Bun's S3Client",
  package: { registry: "npm", name: "@oven/bun-linux-x64" },
  readVersion: () => readVersionOf(BUN, ["--version"], /(\S+)/),
  shows: "files, slices, a writer with multipart upload, streams, `list`, presigned URLs, errors",
  exercise: async (scene) => {
    await runProgram(scene, BUN, [SCRIPT, scene.vault.url, scene.bucket, scene.tree]);
  },
};
