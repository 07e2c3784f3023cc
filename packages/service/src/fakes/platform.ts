// The platform in memory, for tests: one listener on loopback whose paths are identity, storage, messaging and mail. The
// service under test uses it as it uses the real one.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "@platform/kernel/time";
import {
  answerJson,
  FakeRefusal,
  readBody,
  type FakeAnswer,
  type FakeRequest,
} from "./exchange.ts";
import { FakeMailbox } from "./mail.ts";
import { FakeBroker } from "./messaging.ts";
import { answerRefusal, FakeBucket } from "./storage.ts";

const CLIENT_ID = "test-service";
const BUCKET = "test-bucket";
const REGION = "us-east-1";
const TOKEN_S = 3_600;

/** The fakes of one service. */
export class FakePlatform {
  readonly mail = new FakeMailbox();
  readonly messages: FakeBroker;
  readonly objects: FakeBucket;
  readonly #clock: Pick<Clock, "now">;
  readonly #secret: string;
  readonly #clientSecret = randomBytes(32).toString("base64url");
  readonly #accessKey = randomBytes(10).toString("hex");
  readonly #secretKey = randomBytes(32).toString("base64url");
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  /** `secret` is the key of tokens. */
  constructor(clock: Pick<Clock, "now">, secret: string) {
    this.#clock = clock;
    this.#secret = secret;
    const startMs = clock.now();
    const realMs = Date.now();
    this.messages = new FakeBroker(() => clock.now());
    this.objects = new FakeBucket({
      bucket: BUCKET,
      accessKey: this.#accessKey,
      secretKey: this.#secretKey,
      region: REGION,
      // Links are signed with the system's time.
      now: () => Math.max(Date.now(), realMs) + clock.now() - startMs,
    });
  }

  /** Listens; resolves with the variables of a service. */
  async start(): Promise<Record<string, string>> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.#server.unref();
    const url = this.#url;
    return {
      OIDC_ISSUER: `${url}/identity`,
      OIDC_CLIENT_ID: CLIENT_ID,
      OIDC_CLIENT_SECRET: this.#clientSecret,
      OIDC_REDIRECT_URL: "http://localhost:3000/callback",
      MESSAGING_URL: `${url}/messaging`,
      MAIL_URL: `${url}/mail`,
      AWS_ENDPOINT_URL_S3: `${url}/storage`,
      AWS_REGION: REGION,
      AWS_ACCESS_KEY_ID: this.#accessKey,
      AWS_SECRET_ACCESS_KEY: this.#secretKey,
      S3_BUCKET: BUCKET,
    };
  }

  /** Forgets everything and closes the listener. */
  async stop(): Promise<void> {
    this.messages.clear();
    this.mail.clear();
    this.objects.clear();
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** Creates a token of the test key. */
  createToken(claims: Readonly<Record<string, unknown>>): string {
    const nowS = Math.floor(this.#clock.now() / 1_000);
    const encode = (value: object): string =>
      Buffer.from(JSON.stringify(value)).toString("base64url");
    const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ iat: nowS, exp: nowS + TOKEN_S, ...claims })}`;
    return `${text}.${createHmac("sha256", this.#secret).update(text).digest("base64url")}`;
  }

  get #url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await this.#handle(incoming).catch(
      (error: unknown): FakeAnswer => answerRefusal(error) ?? answerProblem(error),
    );
    response.writeHead(answer.status, answer.headers);
    if (answer.stream !== undefined) {
      response.flushHeaders();
      answer.stream(response);
    } else response.end(incoming.method === "HEAD" ? undefined : answer.body);
  }

  async #handle(incoming: IncomingMessage): Promise<FakeAnswer> {
    const url = new URL(incoming.url ?? "/", this.#url);
    const [, part = "", rest = ""] = /^\/(\w+)\/(.*)$/.exec(url.pathname) ?? [];
    const { method = "GET", headers } = incoming;
    const body = await readBody(incoming);
    const request = { method, path: decodeURIComponent(rest), url, headers, body };
    switch (part) {
      case "identity":
        return this.#identify(request);
      case "storage":
        return this.objects.handle(request);
      case "messaging":
        this.#authorize(request);
        return this.messages.handle(request);
      case "mail":
        this.#authorize(request);
        return this.mail.handle(request);
      default:
        throw new FakeRefusal(404, "not_found", `There is no fake at ${url.pathname}.`);
    }
  }

  #identify({ method, path, headers, body }: FakeRequest): FakeAnswer {
    const issuer = `${this.#url}/identity`;
    if (path === ".well-known/openid-configuration") {
      return answerJson({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["HS256"],
      });
    }
    if (method !== "POST" || path !== "token") {
      const detail = "The fake of identity has no sign-in page: send requests with app.as({ id }).";
      throw new FakeRefusal(501, "not_implemented", detail);
    }
    const [, basic = ""] = /^Basic (.+)$/.exec(headers.authorization ?? "") ?? [];
    // RFC 6749 section 2.3.1: both are form-encoded.
    const [id, secret] = Buffer.from(basic, "base64")
      .toString("utf8")
      .split(":")
      .map(decodeURIComponent);
    if (id !== CLIENT_ID || secret !== this.#clientSecret) {
      return answerJson({ error: "invalid_client" }, 401);
    }
    const scope = new URLSearchParams(body.toString("utf8")).get("scope") ?? "";
    const token = this.createToken({ iss: issuer, sub: CLIENT_ID, client_id: CLIENT_ID, scope });
    return answerJson({ access_token: token, token_type: "Bearer", expires_in: TOKEN_S, scope });
  }

  #authorize({ headers }: FakeRequest): void {
    const [, text = "", signature = ""] =
      /^Bearer ([\w-]+\.[\w-]+)\.([\w-]+)$/.exec(headers.authorization ?? "") ?? [];
    const expected = createHmac("sha256", this.#secret).update(text).digest();
    const given = Buffer.from(signature, "base64url");
    if (given.length === expected.length && timingSafeEqual(given, expected)) return;
    throw new FakeRefusal(401, "unauthorized", "The token is not one of the fake of identity.");
  }
}

function answerProblem(error: unknown): FakeAnswer {
  const isRefusal = error instanceof FakeRefusal;
  const status = isRefusal ? error.status : 500;
  const code = isRefusal ? error.code : "internal";
  return answerJson({ status, code, detail: error instanceof Error ? error.message : "" }, status);
}
