// The OpenAPI documents of the services of a running platform.
import type { ContractService, OpenApiDocument } from "./contract.ts";

/** The banner of `platform up --json`. */
export interface RunningPlatform {
  services: { name: string; url: string; listeners: { name: string; port: number }[] }[];
  /** Address of the API of `platform up`. */
  api_url: string;
}

/** A service's API. */
export interface ServiceApi {
  url: string;
  /** Name in `credentials.env` of the token that its paths require, or "". */
  token: string;
}

/** Finds the API of a service. */
export function locateApi(platform: RunningPlatform, name: ContractService): ServiceApi {
  if (name === "runtime") return { url: platform.api_url, token: "PLATFORM_RUNTIME_TOKEN" };
  const service = platform.services.find((one) => one.name === name);
  if (service === undefined) throw new Error(`${name} is not running`);
  const admin = service.listeners.find((listener) => listener.name === "admin");
  const url = name === "vault" ? `http://127.0.0.1:${admin!.port}` : service.url;
  return { url, token: name === "gate" ? "PLATFORM_GATE_AUTH_TOKEN" : "" };
}

/** Fetches a document. `credentials`: the values of `credentials.env`. */
export async function fetchDocument(
  { url, token }: ServiceApi,
  credentials: Readonly<Record<string, string>>,
): Promise<OpenApiDocument> {
  const headers: Record<string, string> =
    token === "" ? {} : { authorization: `Bearer ${credentials[token]}` };
  const answer = await fetch(`${url}/api/docs/openapi.json`, { headers });
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`);
  return (await answer.json()) as OpenApiDocument;
}
