// POST /api/v1/gitops/webhook: pulls the configuration after a push. A signature of the git server authorizes it if there is a
// secret, otherwise the rights of an administrator.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { GitSource } from "../source/git-source.ts";

const BODY_BYTES_MAX = 5 * 1_048_576;

const pushSchema = z.object({ ref: z.string().max(1_024).optional() });

/** Options of {@link createGitopsRoute}. */
export interface GitopsOptions {
  git: GitSource;
  /** Secret of signatures; undefined: the caller is an administrator. */
  secret: string | undefined;
}

export function createGitopsRoute({ git, secret }: GitopsOptions): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/gitops/webhook",
    tag: "Operation",
    summary: "Pull the configuration and reload",
    description:
      "With gitops.secret, X-Hub-Signature-256, X-Gitea-Signature or X-Gitlab-Token authorizes the request. A body with `ref` of another branch is ignored.",
    bodyKind: "bytes",
    bodyBytesMax: BODY_BYTES_MAX,
    answer: z.object({
      status: z.enum(["reloaded", "unchanged", "ignored"]),
      message: z.string(),
      git_output: z.string().describe("output of git, without credentials, at most 64 KiB"),
    }),
    problems: {
      400: "The body, or the configuration of the new commit, is invalid; nothing has changed",
      401: "No signature is valid",
      409: "The branch has other commits, or the working tree has changes",
      501: "git is not installed",
      502: "The remote repository cannot be reached",
      504: "git takes longer than 30 s",
    },
    handle: ({ body, headers }) => {
      if (secret !== undefined && !isSigned(secret, body, headers)) {
        throw createUnauthorizedError("No signature is valid.", "Signature");
      }
      return git.pull(readRef(body));
    },
  });
}

function isSigned(secret: string, body: Uint8Array, headers: Headers): boolean {
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  return [
    isEqual(headers.get("x-hub-signature-256"), `sha256=${digest}`),
    isEqual(headers.get("x-gitea-signature"), digest),
    isEqual(headers.get("x-gitlab-token"), secret),
  ].includes(true);
}

function isEqual(given: string | null, wanted: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(given ?? ""), hash(wanted));
}

function readRef(body: Uint8Array): string | undefined {
  if (body.byteLength === 0) return undefined;
  try {
    return pushSchema.parse(JSON.parse(Buffer.from(body).toString("utf8"))).ref;
  } catch (cause) {
    throw new PlatformError("validation_failed", "expected a JSON object with `ref`", { cause });
  }
}
