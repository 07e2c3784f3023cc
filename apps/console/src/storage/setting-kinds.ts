// Settings that are edited as JSON: an example of each, and the consequences of a change.
import type { Answer } from "../contract/answer.ts";
import { formatNumber } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { t } from "../words/words.ts";
import { bucketPath, type Bucket } from "./objects.ts";

/** A setting that is edited as JSON. */
export interface SettingKind {
  name: string;
  label: string;
  /** The document is one of this storage, and not one of AWS. */
  isOwn?: true;
  sample: (bucket: string) => object;
  /** Sentences about a document that is to be saved; undefined: to be removed. */
  describe: (bucket: Bucket, document: unknown) => Promise<Consequence[]> | Consequence[];
}

/** A consequence of a change. */
export interface Consequence {
  text: string;
  isWarning?: boolean;
}

/** All of them, in the order of their tabs. */
export function listSettingKinds(): readonly SettingKind[] {
  return [
    {
      name: "policy",
      label: t("Policy"),
      sample: (bucket) => ({
        Version: "2012-10-17",
        Statement: [
          {
            Effect: "Allow",
            Principal: { AWS: "arn:aws:iam:::user/NAME" },
            Action: ["s3:GetObject"],
            Resource: [`arn:aws:s3:::${bucket}/*`],
          },
        ],
      }),
      describe: describePolicy,
    },
    {
      name: "lifecycle",
      label: t("Lifecycle"),
      sample: () => ({
        Rules: [
          { ID: "old", Status: "Enabled", Filter: { Prefix: "tmp/" }, Expiration: { Days: 30 } },
        ],
      }),
      describe: (_bucket, document) =>
        document === undefined
          ? [{ text: t("No object expires by itself any more.") }]
          : [
              {
                text: t("{n} rules. What is due is deleted within an hour, without a way back.", {
                  n: formatNumber(countItems(document, "Rules")),
                }),
                isWarning: true,
              },
            ],
    },
    {
      name: "cors",
      label: t("Cross-origin access"),
      sample: () => ({
        CORSRules: [
          { AllowedOrigins: ["https://app.example.com"], AllowedMethods: ["GET", "PUT"] },
        ],
      }),
      describe: describeCors,
    },
    {
      name: "website",
      label: t("Website"),
      sample: () => ({ IndexDocument: { Suffix: "index.html" } }),
      describe: (_bucket, document) => [
        {
          text:
            document === undefined
              ? t("The website addresses of this bucket answer with an error.")
              : t("Objects that a request may read are answered as pages of a website."),
        },
      ],
    },
    {
      name: "events",
      isOwn: true,
      label: t("Events"),
      sample: () => ({
        subscriptions: [
          { events: ["objstore:ObjectCreated:*"], webhook: "https://hooks.example.com/objects" },
        ],
      }),
      describe: describeEvents,
    },
    ...listPlaceKinds(),
  ];
}

function describeEvents(_bucket: Bucket, document: unknown): Consequence[] {
  if (document === undefined) return [{ text: t("Events of this bucket are sent nowhere.") }];
  const n = formatNumber(countItems(document, "subscriptions"));
  return [{ text: t("{n} subscriptions. Names of objects are sent to their addresses.", { n }) }];
}

function listPlaceKinds(): readonly SettingKind[] {
  return [
    {
      name: "replication",
      label: t("Replication"),
      sample: sampleReplication,
      describe: describeReplication,
    },
    {
      name: "cold-tier",
      isOwn: true,
      label: t("Cold tier"),
      sample: () => ({ days: 30, prefix: "", remote: "NAME", bucket: "BUCKET" }),
      describe: (_bucket, document) => [
        {
          text:
            document === undefined
              ? t(
                  "Nothing is moved any more. Objects that were moved stay there and are read from there.",
                )
              : t("Objects of that age are moved to the remote and read from there."),
        },
      ],
    },
  ];
}

function sampleReplication(): object {
  return {
    Role: "",
    Rules: [
      {
        ID: "copy",
        Priority: 1,
        Filter: { Prefix: "" },
        Status: "Enabled",
        DeleteMarkerReplication: { Status: "Enabled" },
        Destination: { Bucket: "arn:objstore:replication::REMOTE:BUCKET" },
      },
    ],
  };
}

function describeReplication({ versioning }: Bucket, document: unknown): Consequence[] {
  if (document === undefined) {
    return [{ text: t("Nothing is sent any more. What waits is forgotten; copies stay.") }];
  }
  if (versioning !== "Enabled") {
    return [{ text: t("Replication requires versions."), isWarning: true }];
  }
  const n = formatNumber(countItems(document, "Rules"));
  return [{ text: t("{n} rules. New versions are sent to their destinations.", { n }) }];
}

async function describePolicy(bucket: Bucket, document: unknown): Promise<Consequence[]> {
  if (document === undefined) {
    return [
      ...(bucket.has_public_policy ? [{ text: t("The bucket is no longer public.") }] : []),
      { text: t("Only the policies of users and roles decide who may use the bucket.") },
    ];
  }
  const path = bucketPath(bucket.name, "/config/policy/check");
  const check = await callService<Answer<"vault", "POST /buckets/{bucket}/config/policy/check">>(
    "vault",
    path,
    {
      method: "POST",
      json: document,
    },
  );
  if (check.is_public) {
    return [
      {
        text: t("The bucket becomes public: everyone, without a sign-in, may do what it allows."),
        isWarning: true,
      },
    ];
  }
  return bucket.has_public_policy ? [{ text: t("The bucket is no longer public.") }] : [];
}

function describeCors(_bucket: Bucket, document: unknown): Consequence[] {
  if (document === undefined) {
    return [{ text: t("Pages of other sites cannot read answers any more.") }];
  }
  const { CORSRules: rules = [] } = document as { CORSRules?: { AllowedOrigins?: string[] }[] };
  const origins = [...new Set(rules.flatMap(({ AllowedOrigins: list = [] }) => list))];
  if (origins.includes("*")) {
    const text = t("Pages of any site can send requests and read the answers.");
    return [{ text, isWarning: true }];
  }
  const names = origins.slice(0, 5).join(", ");
  return [{ text: t("Pages of {names} can send requests and read the answers.", { names }) }];
}

function countItems(document: unknown, name: string): number {
  const list = (document as Record<string, unknown>)[name];
  return Array.isArray(list) ? list.length : 0;
}
