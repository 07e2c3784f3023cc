// OAuth and OpenID Connect endpoints in the OpenAPI document.
import type { JsonObject } from "@platform/kernel/http";
import { CORE_ROUTES, DISCOVERY_ROUTES, OWN_ROUTES } from "../core/routes.ts";
import { TOKEN_EXCHANGE_PARAMETERS } from "../token/token-exchange.ts";

interface Endpoint {
  method: "get" | "post" | "put" | "delete";
  path: string;
  summary: string;
  /** The specification of the endpoint. */
  source: string;
  /** Parameters of its form or query; `…` stands for those of the grant type. */
  parameters?: readonly string[];
  /** JSON instead of a form. */
  isJson?: true;
  /** Type of the response; default JSON. */
  mediaType?: string;
  /** Responds with a page or a redirect. */
  isPage?: true;
}

const TAG = "OAuth 2.0 and OpenID Connect";
const CLIENT_PARAMETERS = [
  "client_id",
  "client_secret",
  "client_assertion_type",
  "client_assertion",
];
const AUTHORIZATION_PARAMETERS = [
  "client_id",
  "response_type",
  "redirect_uri",
  "scope",
  "state",
  "nonce",
  "code_challenge",
  "code_challenge_method",
  "prompt",
  "max_age",
  "acr_values",
  "login_hint",
  "claims",
];

const ENDPOINTS: readonly Endpoint[] = [
  ...DISCOVERY_ROUTES.map(
    (path) =>
      ({
        method: "get",
        path,
        summary: "Discovery document",
        source: path.endsWith("openid-configuration") ? "OpenID Connect Discovery 1.0" : "RFC 8414",
      }) as const,
  ),
  {
    method: "get",
    path: CORE_ROUTES.jwks,
    summary: "Public signing keys",
    source: "RFC 7517",
    mediaType: "application/jwk-set+json",
  },
  ...(["get", "post"] as const).map(
    (method) =>
      ({
        method,
        path: CORE_ROUTES.authorization,
        summary: "Authorization endpoint: code with PKCE (S256)",
        source: "RFC 6749 section 3.1, RFC 7636",
        parameters: [...AUTHORIZATION_PARAMETERS, "request_uri"],
        isPage: true,
      }) as const,
  ),
  {
    method: "post",
    path: CORE_ROUTES.pushed_authorization_request,
    summary: "Push an authorization request",
    source: "RFC 9126",
    parameters: [...AUTHORIZATION_PARAMETERS, ...CLIENT_PARAMETERS],
  },
  {
    method: "post",
    path: CORE_ROUTES.token,
    summary:
      "Token endpoint: code, refresh token, device code, token exchange and client credentials",
    source: "RFC 6749 section 3.2, RFC 8628, RFC 8693, RFC 9449",
    parameters: [
      "grant_type",
      "code",
      "code_verifier",
      "redirect_uri",
      "refresh_token",
      "device_code",
      ...TOKEN_EXCHANGE_PARAMETERS.filter((name) => name !== "scope"),
      "scope",
      ...CLIENT_PARAMETERS,
    ],
  },
  {
    method: "post",
    path: CORE_ROUTES.introspection,
    summary: "Introspect a token",
    source: "RFC 7662",
    parameters: ["token", "token_type_hint", ...CLIENT_PARAMETERS],
  },
  {
    method: "post",
    path: CORE_ROUTES.revocation,
    summary: "Revoke a token",
    source: "RFC 7009",
    parameters: ["token", "token_type_hint", ...CLIENT_PARAMETERS],
  },
  ...(["get", "post"] as const).map(
    (method) =>
      ({
        method,
        path: CORE_ROUTES.userinfo,
        summary: "Claims about the user of an access token",
        source: "OpenID Connect Core 1.0 section 5.3",
      }) as const,
  ),
  {
    method: "post",
    path: CORE_ROUTES.device_authorization,
    summary: "Start a sign-in on a device without a browser",
    source: "RFC 8628 section 3.1",
    parameters: ["client_id", "scope"],
  },
  ...(["get", "post"] as const).map(
    (method) =>
      ({
        method,
        path: CORE_ROUTES.code_verification,
        summary: "Page for entering a device's code",
        source: "RFC 8628 section 3.3",
        parameters: method === "get" ? ["user_code"] : ["user_code", "xsrf", "confirm", "abort"],
        isPage: true,
      }) as const,
  ),
  {
    method: "post",
    path: CORE_ROUTES.registration,
    summary: "Register a client with an initial access token",
    source: "RFC 7591",
    isJson: true,
  },
  ...(["get", "put", "delete"] as const).map(
    (method) =>
      ({
        method,
        path: `${CORE_ROUTES.registration}/{client_id}`,
        summary: {
          get: "A registered client",
          put: "Change a registered client",
          delete: "Delete a registered client",
        }[method],
        source: "RFC 7592",
        ...(method === "put" ? { isJson: true as const } : {}),
      }) as const,
  ),
  ...(["get", "post"] as const).map(
    (method) =>
      ({
        method,
        path: CORE_ROUTES.end_session,
        summary: "Sign a user out on behalf of a client",
        source: "OpenID Connect RP-Initiated Logout 1.0",
        parameters: ["id_token_hint", "client_id", "post_logout_redirect_uri", "state"],
        isPage: true,
      }) as const,
  ),
  {
    method: "get",
    path: OWN_ROUTES.revocations,
    summary: "Revocations since a position of the feed, for verifiers that only check signatures",
    source: "README of the service",
    parameters: ["since"],
  },
];

/** Adds these endpoints to the OpenAPI document; `x-protocol` names the specification. */
export function documentOAuth(document: JsonObject): JsonObject {
  const paths = { ...(document["paths"] as Record<string, JsonObject>) };
  for (const endpoint of ENDPOINTS) {
    const { path, method } = endpoint;
    paths[path] = { ...paths[path], [method]: describeEndpoint(endpoint) };
  }
  return { ...document, paths };
}

function describeEndpoint(endpoint: Endpoint): JsonObject {
  const { method, path, summary, source, parameters = [], isJson, isPage, mediaType } = endpoint;
  const text = { schema: { type: "string" } };
  const inPath = path.endsWith("}")
    ? [{ name: "client_id", in: "path", required: true, ...text }]
    : [];
  const inQuery =
    method === "get" ? parameters.map((name) => ({ name, in: "query", ...text })) : [];
  const properties = Object.fromEntries(parameters.map((name) => [name, { type: "string" }]));
  const media = isJson === true ? "application/json" : "application/x-www-form-urlencoded";
  const hasBody = isJson === true || (method !== "get" && parameters.length > 0);
  const error = {
    description: "RFC 6749 section 5.2",
    content: {
      "application/json": {
        schema: {
          type: "object",
          required: ["error"],
          properties: { error: { type: "string" }, error_description: { type: "string" } },
        },
      },
    },
  };
  return {
    operationId: `${method}${path.replaceAll(/[^A-Za-z]+(\w)/g, (_all, letter: string) => letter.toUpperCase()).replaceAll(/\W/g, "")}`,
    summary,
    tags: [TAG],
    "x-protocol": source,
    security: [],
    parameters: [...inPath, ...inQuery],
    ...(hasBody
      ? {
          requestBody: {
            required: true,
            content: { [media]: { schema: { type: "object", properties } } },
          },
        }
      : {}),
    responses: {
      [method === "delete" ? 204 : 200]: {
        description: "Success",
        ...(method === "delete"
          ? {}
          : { content: isPage === true ? { "text/html": {} } : describeAnswer(source, mediaType) }),
      },
      ...(isPage === true ? { 303: { description: "Redirect" } } : {}),
      default: error,
    },
  };
}

function describeAnswer(source: string, mediaType = "application/json"): JsonObject {
  const schema = { type: "object", description: `As defined by ${source}` };
  return { [mediaType]: { schema } };
}
