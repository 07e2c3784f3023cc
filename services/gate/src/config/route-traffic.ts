// Fields of a route that change requests and responses, or answer instead of an upstream.
import { readPatternFault, type Fault } from "@platform/kernel/errors";
import { REDACTED } from "@platform/kernel/log";
import { corsSchema } from "@platform/kernel/route-rules";
import { RE2JS } from "re2js";
import { z } from "zod";
import {
  cuttableField,
  filePath,
  originUrl,
  pathPrefix,
  text,
  unset,
  wholeNumber,
  yesNo,
} from "./value.ts";

const LIST_MAX = 64;
const BODY_CHARACTERS_MAX = 65_536;
const PATTERN_CHARACTERS_MAX = 512;
/** Fields that the gateway or the engine writes. */
const RESERVED =
  /^(?:x-forwarded-.*|forwarded|via|traceparent|tracestate|x-request-id|x-user-id|x-user-roles|x-tenant-id|max-forwards|keep-alive|upgrade|te|trailer|date|x-platform-gate-.*)$/;

const fieldValue = () =>
  z
    .string()
    .max(4_096)
    .regex(/^[\t\x20-\x7e]*$/, { error: "expected printable ASCII" });

const ruleName = () =>
  cuttableField().refine((name) => !RESERVED.test(name.toLowerCase()), {
    error: "expected a field that the gateway does not write itself",
  });

const headerRules = z.strictObject({
  set: unset(z.record(ruleName(), fieldValue())).meta({ description: "fields to replace or add" }),
  add: unset(z.record(ruleName(), fieldValue())).meta({
    description: "fields to add to those that are there",
  }),
  remove: unset(z.array(ruleName()).max(LIST_MAX)).meta({ description: "fields to remove" }),
});

const rewriteSchema = z
  .strictObject({
    pattern: text(PATTERN_CHARACTERS_MAX).meta({
      description: "regular expression (RE2) for the normalized path",
    }),
    to: text(2_048)
      .regex(/^[/$][\x21-\x7e]*$/, { error: 'expected a path that starts with "/"' })
      .refine((to) => !/[?#]/.test(to), {
        error: "expected a path without a query: that of the request is kept",
      })
      .meta({ description: "new path; `$1` or `${name}` insert groups, `\\$` is a dollar sign" }),
  })
  .superRefine(({ pattern, to }, context) => {
    const refuse = (key: string, message: string, fault: Fault = {}): void => {
      const params = { code: fault.code, ...fault.params };
      context.addIssue({ code: "custom", path: [key], message, params });
    };
    try {
      const fault = findGroupFault(to, RE2JS.compile(pattern));
      if (fault !== undefined) refuse("to", fault);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      const fault = readPatternFault(cause);
      refuse("pattern", `expected a regular expression (RE2): ${message}`, fault);
    }
  });

/** The reason why a path inserts a group that its pattern does not have; undefined if there is none. */
function findGroupFault(to: string, pattern: RE2JS): string | undefined {
  const names = pattern.namedGroups();
  for (const [text, digit, name] of to.matchAll(/\\.|\$(?:(\d)\d*|\{([^}]*)\})?/g)) {
    if (text.startsWith("\\")) continue;
    const isKnown =
      name === undefined ? Number(digit) <= pattern.groupCount() : Object.hasOwn(names, name);
    if (!isKnown) return `expected a group of the pattern, not ${text}`;
  }
  return undefined;
}

const redirectSchema = z.strictObject({
  to: text(2_048)
    .regex(/^(?:\/(?!\/)|https?:\/\/)[\x21-\x7e]*$/, {
      error: "expected a path or an http or https URL",
    })
    .meta({
      description:
        "address; `{path}`, `{rest}` (the path after the prefix), `{query}` (with its `?`) and `{host}` are inserted",
    }),
  status: unset(z.union([301, 302, 303, 307, 308].map((status) => z.literal(status)))).meta({
    description: "status; default: 308",
  }),
});

const respondSchema = z.strictObject({
  status: wholeNumber(200, 599).default(200),
  body: unset(z.string().max(BODY_CHARACTERS_MAX)).meta({ description: "body of the response" }),
  headers: unset(z.record(ruleName(), fieldValue())).meta({
    description: "fields; default with a body: Content-Type: text/plain; charset=utf-8",
  }),
});

const filesSchema = z.strictObject({
  root: filePath().meta({ description: "folder; the path after the prefix names the file" }),
  index: unset(relativeFile()).meta({
    description: "file that stands for a folder; default: index.html",
  }),
  fallback: unset(relativeFile()).meta({
    description: "file below `root` to send if a file does not exist, for single-page applications",
  }),
  precompressed: yesNo().meta({
    description:
      "send `FILE.br`, `FILE.zst` or `FILE.gz` to clients that accept it, unless it is older than the file",
  }),
  cache_control: unset(fieldValue()).meta({
    description: "value of Cache-Control; default: no-cache (clients revalidate)",
  }),
});

const mirrorSchema = z.strictObject({
  target: originUrl().meta({ description: "origin of the service" }),
  percent: unset(z.number().gt(0).max(100)).meta({
    description: "share of the requests; default: 100",
  }),
  max_body_size: unset(wholeNumber(1, 16_777_216)).meta({
    description: "requests with larger bodies are not mirrored, in bytes; default: 1 MiB",
  }),
});

const recordSchema = z.strictObject({
  percent: unset(z.number().gt(0).max(100)).meta({
    description: "share of the requests; default: 100",
  }),
  max_body_size: unset(wholeNumber(1, 1_048_576)).meta({
    description:
      "larger bodies of requests and responses are not recorded, in bytes; default: 64 KiB",
  }),
  redact: unset(z.array(text(256)).max(LIST_MAX)).meta({
    description:
      "names of further header fields, parameters and JSON members whose values are redacted",
  }),
  prompts: yesNo().meta({
    description: "record the bodies of requests and responses on AI routes, too; default: omitted",
  }),
});

const CODINGS = ["br", "zstd", "gzip"] as const;

const compressSchema = z.strictObject({
  codings: unset(
    z
      .array(z.enum(CODINGS))
      .max(CODINGS.length)
      .refine((codings) => new Set(codings).size === codings.length, {
        error: "expected distinct codings",
      }),
  ).meta({ description: "codings in order of preference; default: br, zstd, gzip" }),
  types: unset(
    z
      .array(
        text(128).regex(/^[a-z0-9!#$&^_.+-]+\/(?:[a-z0-9!#$&^_.+-]+|[a-z0-9!#$&^_.+-]*\*)$/, {
          error: 'expected a media type in lower case, such as "text/*"',
        }),
      )
      .max(LIST_MAX),
  ).meta({
    description:
      "media types, `*` at the end stands for any rest; default: text, JSON, XML, JavaScript, SVG, WebAssembly and uncompressed fonts",
  }),
  min_size: unset(wholeNumber(1, 1_073_741_824)).meta({
    description: "minimum size of a response in bytes; default: 1024",
  }),
});

/** Fields of {@link RouteTrafficFields} with their schemas. */
export const routeTrafficFields = {
  cors: unset(corsSchema).meta({
    description:
      "requests of pages of other origins; preflights are answered before authentication",
  }),
  request_headers: unset(headerRules).meta({ description: "fields of requests to the upstream" }),
  response_headers: unset(headerRules).meta({ description: "fields of the upstream's responses" }),
  replace_prefix: unset(pathPrefix()).meta({
    description: "forward the path with this in place of the prefix",
  }),
  rewrite: unset(z.array(rewriteSchema).max(LIST_MAX)).meta({
    description: "rules for the forwarded path; the first whose pattern matches applies",
  }),
  redirect: unset(redirectSchema).meta({ description: "send clients to another address" }),
  respond: unset(respondSchema).meta({ description: "answer with a fixed response" }),
  compress: unset(z.union([z.boolean(), compressSchema])).meta({
    description:
      "compress responses of the upstream and files that are not compressed yet; clients choose by Accept-Encoding, `Cache-Control: no-transform` prevents it",
  }),
  mirror: unset(mirrorSchema).meta({
    description:
      "send a share of the requests to another service, too; its responses are discarded",
  }),
  record: unset(z.union([z.boolean(), recordSchema])).meta({
    description:
      "record requests and responses of the upstream, with credentials redacted, for `platform-gate replay`",
  }),
  files: unset(filesSchema).meta({ description: "answer with the files of a folder" }),
  openapi: unset(z.union([text(), z.record(z.string(), z.unknown())])).meta({
    description:
      "OpenAPI document (3.0 or 3.1), or the path of its file in JSON or YAML: requests whose path, query, header fields, cookies or JSON body do not conform get 400",
  }),
  openapi_allow_unknown: yesNo().meta({
    description:
      "forward operations that are not in the document; otherwise they get 404, or 405 where the path has others",
  }),
  openapi_responses: unset(z.enum(["report"])).meta({
    description:
      "`report`: count and log responses whose status, type or JSON body (up to 1 MiB) is not that of the document; they are passed on unchanged",
  }),
};

type Settings<T extends z.ZodType> = z.output<T>;

/** Validated {@link routeTrafficFields}. */
export interface RouteTrafficFields {
  readonly cors?: Settings<typeof corsSchema>;
  readonly request_headers?: Settings<typeof headerRules>;
  readonly response_headers?: Settings<typeof headerRules>;
  readonly replace_prefix?: string;
  readonly rewrite?: readonly Settings<typeof rewriteSchema>[];
  readonly redirect?: Settings<typeof redirectSchema>;
  readonly respond?: Settings<typeof respondSchema>;
  readonly compress?: boolean | Settings<typeof compressSchema>;
  readonly mirror?: Settings<typeof mirrorSchema>;
  readonly record?: boolean | Settings<typeof recordSchema>;
  readonly files?: Settings<typeof filesSchema>;
  readonly openapi?: string | Readonly<Record<string, unknown>>;
  readonly openapi_allow_unknown?: true;
  readonly openapi_responses?: "report";
}

/** Reports values of header fields that are the placeholder of a hidden one, as callers who may only read see it. */
export function checkHidden(route: RouteTrafficFields, context: z.RefinementCtx): void {
  const { request_headers: request, response_headers: response, respond } = route;
  const groups: [path: string[], values: Readonly<Record<string, string>> | undefined][] = [
    [["request_headers", "set"], request?.set],
    [["request_headers", "add"], request?.add],
    [["response_headers", "set"], response?.set],
    [["response_headers", "add"], response?.add],
    [["respond", "headers"], respond?.headers],
  ];
  for (const [path, values = {}] of groups) {
    for (const [name, value] of Object.entries(values)) {
      if (value !== REDACTED) continue;
      const message = "is the placeholder of a hidden value; set the value itself";
      context.addIssue({ code: "custom", path: [...path, name], message });
    }
  }
}

/** The name of a file below a folder. */
function relativeFile() {
  return text(1_024).refine(
    (path) => path.split("/").every((part) => part !== "" && !/^\.|[\\\0]/.test(part)),
    { error: "expected a file below the folder, such as index.html" },
  );
}
